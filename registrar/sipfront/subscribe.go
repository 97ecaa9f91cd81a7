package sipfront

import (
	"errors"
	"strings"

	"rollcall/registrar"
)

var errEvent = errors.New("not a package with parameters")

// subscribe reads what only a SUBSCRIBE has (RFC 6665 §8.2).
func (m *message) subscribe(p parts) (*registrar.Subscribe, *refusal) {
	s := &registrar.Subscribe{From: m.from.value, To: m.to.value, Tag: string(appendTag(nil, m))}
	s.FromTag, _ = p.from.Param("tag")
	s.ToTag, _ = p.to.Param("tag")
	if s.ToTag == "" && m.toTag == tagPresent {
		return nil, bad("To: empty tag")
	}
	var err error
	if m.event.n > 1 {
		return nil, bad("More than one Event")
	}
	if m.event.n == 1 {
		if s.Event, s.EventID, err = event(m.event.value); err != nil {
			return nil, badFor("Event", err)
		}
	}
	if s.Accept, err = mediaTypes(m.accept); err != nil {
		return nil, badFor("Accept", err)
	}
	if s.RecordRoutes, err = paths(m.recordRoutes); err != nil {
		return nil, badFor("Record-Route", err)
	}
	return s, nil
}

// event reads event-type *( SEMI event-param ).
func event(v string) (name, id string, err error) {
	end := skipToken(v, 0)
	if end == 0 {
		return "", "", errEvent
	}
	name = v[:end]
	for i := skipBlank(v, end); i < len(v); {
		p, next, ok := nextParam(v, i)
		if !ok || next == i || (strings.EqualFold(p.name, "id") && p.value == "") {
			return "", "", errEvent
		}
		if strings.EqualFold(p.name, "id") {
			id = p.value
		}
		i = next
	}
	return name, id, nil
}

// mediaTypes reads Accept, without parameters; nil when there is none, which is not the
// same as an empty one (RFC 3261 §20.1).
func mediaTypes(values []string) ([]string, error) {
	if values == nil {
		return nil, nil
	}
	types := []string{}
	for _, v := range values {
		if strings.Trim(v, " \t") == "" {
			continue
		}
		list, err := registrar.SplitList(v)
		if err != nil {
			return nil, err
		}
		for _, item := range list {
			t, _, _ := strings.Cut(item, ";")
			main, sub, _ := strings.Cut(t, "/")
			types = append(types, strings.ToLower(strings.Trim(main, " \t")+"/"+strings.Trim(sub, " \t")))
		}
	}
	return types, nil
}
