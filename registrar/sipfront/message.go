package sipfront

import "rollcall/registrar"

type message struct{}

func (m *message) render(reply registrar.Reply, version string) []byte { return nil }

func parse(raw []byte, flow registrar.Flow, version string) (*Inbound, []byte, error) {
	return nil, nil, nil
}
