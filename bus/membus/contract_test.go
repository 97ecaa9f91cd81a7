package membus_test

import (
	"testing"

	"rollcall/bus"
	"rollcall/bus/bustest"
	"rollcall/bus/membus"
)

func TestContract(t *testing.T) {
	bustest.Run(t, func(*testing.T) bustest.Fixture {
		b := membus.New(membus.Options{})
		return bustest.Fixture{
			Connect: func(_ *testing.T, name string) bus.Bus { return b.Connect(name) },
			Cut:     func(_ *testing.T, c bus.Bus) { c.(*membus.Conn).Cut() },
			Heal:    func(_ *testing.T, c bus.Bus) { c.(*membus.Conn).Heal() },
			Stop:    func(*testing.T) { b.Stop() },
			Start:   func(*testing.T) { b.Start() },
		}
	})
}
