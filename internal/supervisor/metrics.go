package supervisor

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"rollcall/internal/control"
	"rollcall/routing"
)

// collector turns a status into metrics, at the moment it is asked.
type collector struct {
	status statusFunc

	answered, epoch, users                   *prometheus.Desc
	state, copies, bindings, flows           *prometheus.Desc
	groupsWithoutPrimary, groupsWithoutSpare *prometheus.Desc
}

func newCollector(status statusFunc) *collector {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("rollcall_"+name, help, labels, nil)
	}
	return &collector{
		status:               status,
		answered:             describe("status_up", "1 when the pool answered, else 0; the others are missing then."),
		epoch:                describe("placement_epoch", "Epoch of the placement; 0 before the first one."),
		users:                describe("users", "Provisioned users in groups whose primary answers."),
		groupsWithoutPrimary: describe("groups_without_primary", "Routing groups that nobody serves."),
		groupsWithoutSpare:   describe("groups_without_secondary", "Routing groups with one copy only."),
		state:                describe("frontend_state", "1 for the state that a Front End is in.", "frontend", "state"),
		copies:               describe("frontend_copies", "Copies that the placement gives to a Front End.", "frontend", "role"),
		bindings:             describe("frontend_bindings", "Bindings in the groups that a Front End is primary of.", "frontend"),
		flows:                describe("frontend_flows", "Open connections and UDP flows with a registration.", "frontend"),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.answered, c.epoch, c.users, c.groupsWithoutPrimary, c.groupsWithoutSpare, c.state, c.copies, c.bindings, c.flows,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	s, err := c.status(context.Background()) // bounded by limited
	if err != nil {
		gauge(c.answered, 0)
		return
	}
	gauge(c.answered, 1)
	gauge(c.epoch, int(s.Epoch))
	c.collectGroups(s, gauge)
	for _, fe := range s.FrontEnds {
		name := string(fe.Name)
		for _, state := range []routing.State{routing.Joining, routing.Up, routing.Draining, routing.Down} {
			gauge(c.state, one(fe.State == state), name, string(state))
		}
		gauge(c.copies, fe.Primaries, name, "primary")
		gauge(c.copies, fe.Secondaries, name, "secondary")
		gauge(c.copies, fe.Tertiaries, name, "tertiary")
		if !fe.Silent { // what is not known is missing, not 0
			gauge(c.bindings, fe.Bindings, name)
			gauge(c.flows, fe.Flows, name)
		}
	}
}

func (c *collector) collectGroups(s control.Status, gauge func(*prometheus.Desc, int, ...string)) {
	users, orphans, single := 0, 0, 0
	down := map[routing.FrontEnd]bool{}
	for _, fe := range s.FrontEnds {
		down[fe.Name] = fe.State == routing.Down
	}
	for _, g := range s.Groups {
		users += g.Users
		led := g.Primary != nil && !down[*g.Primary]
		orphans += one(!led)
		single += one(led && (g.Secondary == nil || down[*g.Secondary]) && (g.Tertiary == nil || down[*g.Tertiary]))
	}
	gauge(c.users, users)
	gauge(c.groupsWithoutPrimary, orphans)
	gauge(c.groupsWithoutSpare, single)
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
