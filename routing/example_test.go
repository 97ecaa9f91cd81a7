package routing_test

import (
	"fmt"

	"rollcall/routing"
)

// A pool forms, and loses the Front End that is primary of its only group.
func ExamplePlanFor() {
	members := []routing.Member{
		{Name: "fe1", Boot: "a", State: routing.Up},
		{Name: "fe2", Boot: "b", State: routing.Up},
		{Name: "fe3", Boot: "c", State: routing.Up},
	}
	formed := routing.PlanFor(routing.NewPlacement(routing.GroupNames(1)), members)
	fmt.Println(formed.Next.Groups["g01"])

	members[0].State = routing.Down
	after := routing.PlanFor(formed.Next, members)
	for _, move := range after.Moves {
		fmt.Printf("%s: %s → %s (%s)\n", move.Group, move.From, move.To, move.Why)
	}
	fmt.Println("again:", len(routing.PlanFor(after.Next, members).Moves))
	// Output:
	// fe1 fe2 fe3
	// g01: fe1 fe2 fe3 → fe2 fe3 - (fe1 is down: secondary fe2 promoted; fe3 now secondary)
	// again: 0
}
