// Package loadtest keeps thousands of registered softphones, takes their registrar
// away, and measures for each one how long it was gone. Run runs a scenario; the
// parts are in the folders below: phone (what one softphone does, pure), engine (many
// of them in one process), behaviour (how real phones come back), scenario, measure
// and report.
//
//	s := &scenario.Scenario{Targets: []string{"192.0.2.1:5060"}, Clients: 1000}
//	if err := s.Complete(); err != nil { … }
//	r, err := loadtest.Run(ctx, s, loadtest.Options{})
package loadtest
