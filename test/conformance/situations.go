package conformance

// situations are the rows of the table of REGISTER situations that went wrong
// somewhere in the field, numbered as there.
func situations() Group {
	const kinds = "parsing"
	const semantics, transport, cluster = "semantics", "transport", "cluster"
	rows := []Rule{
		rule("1", kinds, "Blanks around \";\" and \"=\" are legal; the parameter counts.", "sipp.row-01 | sipfront.TestWireCases/1 blank before expires=0 | registrar.TestRegisterCases/case 01 blank before expires=0"),
		rule("2", kinds, "Parameter names in any case.", "sipp.row-02 | sipfront.TestWireCases/2 EXPIRES | sipfront.TestWireCases/2 BRANCH"),
		rule("3", kinds, "A port that runs into the transport: 400, nothing changed, the connection stays.", "sipp.row-03 | sipfront.TestWireCases/3 port runs into transport"),
		rule("4", kinds, "Contact: None: 400, the connection stays.", "sipp.row-04 | sipfront.TestWireCases/4 Contact: None"),
		rule("5", kinds, "\"*\" with Expires: 0 behind it, before it, and in compact form.", "sipp.row-05 | sipfront.TestWireCases/5 star, Expires before | registrar.TestRegisterCases/case 05 star with Expires 0"),
		rule("6", semantics, "\"*\" with 3600, with a second contact, without Expires: 400, nothing changed.", "sipp.row-06 | registrar.TestRegisterCases/case 06 star against the rules"),
		rule("7", semantics, "\"*\" out of order fails, and nothing changes.", "sipp.row-07 | registrar.TestRegisterCases/case 07 star out of order"),
		rule("8", kinds, "Two contacts in one field, commas and > in quotes.", "sipp.row-08 | sipfront.TestWireCases/8 two contacts, quoted comma and > | registrar.TestParseContacts/case 08: > in an instance"),
		rule("9", kinds, "To, From, Call-ID, CSeq missing, double or malformed: 400, and the connection is served on.", "wire.TestRow09Headers | sipfront.TestWireCases/9 no To"),
		rule("10", kinds, "SIP/7.0: 505.", "sipp.row-10 | sipfront.TestWireCases/10 SIP/7.0"),
		rule("11", kinds, "The method register is not REGISTER: 501 with Allow.", "sipp.row-11 | sipfront.TestWireCases/11 register"),
		rule("12", kinds, "All fields in compact form.", "sipp.row-12 | sipfront.TestWireCases/12 compact"),
		rule("13", kinds, "IPv6 in Via and Contact; received with and without brackets; we write brackets.", "wire.TestRow13IPv6 | sipfront.TestIPv6 | sipfront.TestWireCases/13 received without brackets"),
		rule("14", kinds, "Two \"@\" in a URI: 400.", "sipp.row-14 | sipfront.TestWireCases/14 two @ in To"),
		rule("15", kinds, "To with a strange scheme: 400; the Request-URI: 416.", "sipp.row-15 | sipfront.TestWireCases/15 To without a scheme"),
		rule("16", transport, "Several requests and a piece in one segment; one request cut at every byte.", "wire.TestRow16CutAtEveryByte | wire.TestRow16SeveralInOneSegment | sipfront.TestFramerCutAnywhere"),
		rule("17", transport, "A header without end; a huge Content-Length: 413 or 400, closed, bounded memory.", "wire.TestRow17And18BrokenStreams | sipfront.TestEndlessHeaderIsBounded"),
		rule("18", transport, "No Content-Length or a malformed one on TCP: 400, closed.", "wire.TestRow17And18BrokenStreams | sipfront.TestBrokenStreams/18 no Content-Length"),
		rule("19", transport, "CRLF CRLF alone, between requests, split: a CRLF.", "wire.TestRow19KeepAlive | sipfront.TestPings"),
		rule("20", transport, "WebSocket pings, close frames, absurd lengths.", "").but("the pool has no WebSocket listener yet."),
		rule("21", semantics, "Lower CSeq: 500 (or 400 by policy), the binding stays.", "sipp.row-21 | registrar.TestRegisterCases/case 21 lower CSeq"),
		rule("22", semantics, "The very same request again: the same answer, one change.", "wire.TestRow22Retransmission | registrar.TestRegisterCases/case 22 retransmission | sipfront.TestRetransmission"),
		rule("23", semantics, "The same CSeq with a new branch fails; an option lets it pass.", "sipp.row-23 | registrar.TestRegisterCases/case 23 equal CSeq, new branch | wire.TestPolicies/equal CSeq"),
		rule("24", semantics, "A second contact that is malformed or too brief: nothing changes.", "sipp.row-24 | registrar.TestRegisterCases/case 24 second contact bad"),
		rule("25", semantics, "Same instance and reg-id, new Call-ID and contact: replaced, counted once.", "sipp.row-25 | registrar.TestRegisterCases/case 25 instance replaces"),
		rule("26", semantics, "The same instance twice, new contact and old one with expires=0: one binding, one change.", "sipp.row-26 | registrar.TestRegisterCases/case 26 instance twice"),
		rule("27", semantics, "Too brief: 423 with Min-Expires.", "sipp.row-27 | registrar.TestRegisterCases/case 27 too brief"),
		rule("28", semantics, "A malformed Expires is the default of 3600 s; no Contact is a query.", "sipp.row-28 | registrar.TestRegisterCases/case 28 malformed Expires, query"),
		rule("29", semantics, "Contacts are compared as URIs.", "sipp.row-29 | registrar.TestRegisterCases/case 29 spellings of one contact"),
		rule("30", semantics, "Above the limit: 403 (503, or the oldest replaced, by policy); a refresh is never refused.", "sipp.row-30 | registrar.TestRegisterCases/case 30 limit | registrar.TestRegisterCases/case 30 limit by replacement | wire.TestPolicies/replace the oldest"),
		rule("31", semantics, "The same device from another port at each reconnect: what was bound to the closed connection is gone.",
			"wire.TestRow31And40ClosedConnection | registrar.TestRegisterCases/case 31 closed connection").but("shown over TCP; there is no TLS yet."),
		rule("32", semantics, "An unknown Require: 420 with Unsupported.", "sipp.row-32 | registrar.TestRegisterCases/case 32 unknown Require"),
		rule("33", semantics, "A domain that is not ours: 404.", "sipp.row-33 | registrar.TestRegisterCases/case 33 other domains"),
		rule("34", semantics, "Authenticated as bob, To is alice: 403.", "sipp.row-34 | registrar.TestCase34BobForAlice"),
		rule("35", semantics, "Path of a client that doesn't support it: by policy; stored in order; echoed.", "sipp.row-35 | registrar.TestRegisterCases/case 35 Path"),
		rule("36", semantics, "A nonce too old, the digest right: stale=true; nc twice bans nobody.", "wire.TestPolicies/a nonce too old | wire.TestRow36Stale | registrar.TestCase36Stale"),
		rule("37", semantics, "Two users challenged at once: different nonces, counts of their own.", "wire.TestRow37Nonces | registrar.TestCase37NoncesDiffer"),
		rule("38", transport, "Without rport to the Via's port, with it to the source.", "wire.TestRow38AnswerPort | sipfront.TestAnswerPort"),
		rule("39", transport, "transport=wss and x.invalid from a browser are taken as they are.", "sipp.row-39 | sipfront.TestWireCases/39 browser").but("shown over UDP and TCP; the pool has no WebSocket listener yet."),
		rule("40", cluster, "A connection closes: its binding is gone everywhere, and a later request says so.",
			"wire.TestRow31And40ClosedConnection | frontend.TestClosedConnectionTakesItsBinding").but("the tests are deadlines of seconds for slow machines; no test holds it to 100 ms."),
		rule("41", cluster, "Replaced through another Front End: all see the same.", "wire.TestRow41ReplacedElsewhere"),
		rule("42", cluster, "Two requests of one user at once, at one Front End and at two: both answered, one of the two orders.",
			"wire.TestRow42AtOnce | system.TestSameUserAtTwoFrontEnds | sim.TestTwoFrontEndsWriteOneUser"),
		rule("43", cluster, "A refresh in the instant of the expiry: never a 200 and then a removal.", "sim.TestRefreshInTheInstantOfExpiry | registrar.TestRegisterCases/case 43 refresh at expiry"),
		rule("44", cluster, "The whole pool restarted: what was acknowledged is there.", "system.TestNothingLostWhenAllAreKilled | sim.TestKillAllAndRestart"),
		rule("45", cluster, "10,000 clients register while a Front End joins: no copy drops a live binding.", "sim.TestJoinUnderLoad"),
		rule("46", cluster, "The store out of reach: 503 with Retry-After, or held; never a 200.", "system.TestNoBusNoAcknowledgement | sim.TestCutFromTheBus"),
		rule("47", cluster, "A thousand clients with wrong passwords: others are served, and memory is bounded (12,000 requests may add 48 MiB in the test, over all processes).", "wire.TestRow47WrongPasswords"),
		rule("48", cluster, "A peer that vanishes without FIN is noticed by keep-alive.", "sipfront.TestKeepAliveIsOn").
			but("the test shows that the system probes each connection (30 s, three times 10 s), and what follows from its end is row 40; no test cuts a real wire."),
	}
	return Group{"REGISTER situations seen in the field", "Numbered as in the list of situations that the project keeps; each stands for its kind.", rows}
}

func flows() Group {
	const s = "RFC 3665 §2."
	return Group{"RFC 3665 §2: registration flows", "", []Rule{
		rule("3665-2.1", s+"1", "A successful new registration, challenged.", "sipp.rfc3665-2.1"),
		rule("3665-2.2", s+"2", "An update of the contact list.", "sipp.rfc3665-2.2"),
		rule("3665-2.3", s+"3", "A request for the current contact list.", "sipp.rfc3665-2.3"),
		rule("3665-2.4", s+"4", "Cancellation of the registration.", "sipp.rfc3665-2.4"),
		rule("3665-2.5", s+"5", "An unsuccessful registration.", "sipp.rfc3665-2.5"),
	}}
}
