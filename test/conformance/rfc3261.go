package conformance

func section103() Group {
	const s = "RFC 3261 §10.3 "
	return Group{"RFC 3261 §10.3: processing a REGISTER", "The steps are the section's own, the letters ours.", []Rule{
		rule("10.3-1", s+"step 1", "A Request-URI of another domain is not ours to serve: 404, since this is no proxy. Other names of a domain can be configured.",
			"registrar.TestSection10_3/step 1: a Request-URI of another domain | sipp.row-33 | wire.TestSIP_RG_RR_I_001"),
		rule("10.3-2", s+"step 2", "A required extension that is not known is refused with 420, and Unsupported names it and no other.",
			"registrar.TestSection10_3/step 2: unknown extension | sipp.row-32 | wire.TestSIP_RG_RR_I_004"),
		rule("10.3-3", s+"step 3", "The user is authenticated before anything is changed.",
			"wire.TestSIP_RG_RR_V_019 | wire.TestSIP_RG_RR_V_020 | wire.TestSIP_RG_RR_V_021 | sipp.rfc3665-2.5"),
		rule("10.3-4a", s+"step 4", "A user who may not change this address-of-record is refused with 403.",
			"registrar.TestCase34BobForAlice | sipp.row-34 | wire.TestSIP_RG_RR_V_022"),
		rule("10.3-4b", s+"step 4", "Whether somebody may register for another is a policy.",
			"registrar.TestSection10_3/step 4: third-party registration | registrar.TestCase34BobForAlice | wire.TestPolicies/third party refused"),
		rule("10.3-5a", s+"step 5", "An address-of-record that is not valid in the domain: 404.",
			"registrar.TestSection10_3/step 5: an AOR that is not valid in the domain | sipp.row-33"),
		rule("10.3-5b", s+"step 5", "The address-of-record is found in a canonical form: parameters gone, escapes undone, host in lower case.",
			"registrar.TestParseAOR"),
		rule("10.3-6a", s+"step 6", "Without Contact nothing is changed, and the bindings are listed.",
			"registrar.TestSection10_3/step 6: no Contact is a query | sipp.rfc3665-2.3 | wire.TestSIP_RG_RR_V_002 | wire.TestSIP_RG_RR_V_003"),
		rule("10.3-6b", s+"step 6", "\"*\" beside another contact, or with an Expires that is not 0 or is missing: 400, nothing changed.",
			"registrar.TestRegisterCases/case 06 star against the rules | sipp.row-06 | wire.TestSIP_RG_RR_I_002 | wire.TestSIP_RG_RR_I_003"),
		rule("10.3-6c", s+"step 6", "\"*\" removes all bindings, those of other Call-IDs too.",
			"registrar.TestSection10_3/step 6: star removes all | sipp.row-05 | wire.TestSIP_RG_RR_V_008"),
		rule("10.3-6d", s+"step 6", "\"*\" with the Call-ID of a binding and a CSeq that is not higher fails as a whole.",
			"registrar.TestRegisterCases/case 07 star out of order | sipp.row-07 | wire.TestSIP_RG_RR_O_003"),
		rule("10.3-7a", s+"step 7", "The expiry is the contact's own, else that of the Expires field, else the registrar's default.",
			"registrar.TestSection10_3/step 7: expiry/parameter before header field | registrar.TestSection10_3/step 7: expiry/header field | "+
				"registrar.TestSection10_3/step 7: expiry/default | wire.TestSIP_RG_RR_V_009 | wire.TestSIP_RG_RR_V_010 | wire.TestSIP_RG_RR_V_011 | wire.TestSIP_RG_RR_V_012"),
		rule("10.3-7b", s+"step 7", "The registrar may shorten it.", "registrar.TestSection10_3/step 7: expiry/above the maximum is lowered | wire.TestSIP_RG_RR_V_013"),
		rule("10.3-7c", s+"step 7", "Under an hour and under the minimum: 423 with Min-Expires. An hour is never too brief.",
			"registrar.TestSection10_3/step 7: expiry/case 27: below the minimum | registrar.TestSection10_3/step 7: expiry/an hour is never too brief | sipp.row-27 | wire.TestSIP_RG_RR_V_014"),
		rule("10.3-7d", s+"step 7", "A contact is compared with the bindings as a URI; one that isn't there is added.",
			"registrar.TestRegisterCases/case 29 spellings of one contact | sipp.row-29 | wire.TestSIP_RG_RR_V_004"),
		rule("10.3-7e", s+"step 7", "With another Call-ID a binding is updated, or removed at expiry 0, whatever the CSeq.",
			"registrar.TestSection10_3/step 7: order | wire.TestSIP_RG_RR_V_018"),
		rule("10.3-7f", s+"step 7", "With its own Call-ID a binding needs a higher CSeq, or the request fails (500 by default, 400 by policy).",
			"registrar.TestSection10_3/step 7: order | registrar.TestRegisterCases/case 21 lower CSeq | sipp.row-21 | sipp.row-23 | wire.TestSIP_RG_RR_O_001 | wire.TestSIP_RG_RR_O_002"),
		rule("10.3-7g", s+"step 7", "All or nothing over all contacts of a request.",
			"registrar.TestSection10_3/step 7: all or nothing | registrar.TestDecideAgainstModel | sipp.row-24"),
		rule("10.3-7i", s+"step 7", "A binding that isn't refreshed goes when its time and a grace (10 s by default) are over.",
			"wire.TestPolicies/expiry | registrar.TestSection10_3/step 8: the answer | sim.TestRefreshInTheInstantOfExpiry"),
		rule("10.3-7h", s+"step 7", "What can't be stored is not acknowledged: no 200, but 503 or silence.", "system.TestNoBusNoAcknowledgement"),
		rule("10.3-8a", s+"step 8", "The 200 lists every current binding with the seconds that are left, its q and its parameters as they were registered.",
			"registrar.TestSection10_3/step 8: the answer | wire.TestSIP_RG_RR_V_001 | wire.TestSIP_RG_RR_V_015 | sipp.row-08"),
		rule("10.3-8b", s+"step 8", "The 200 has a Date.", "registrar.TestSection10_3/step 8: the answer | sipp.rfc3665-2.1"),
	}}
}

func section102() Group {
	const s = "RFC 3261 §10.2"
	return Group{"RFC 3261 §10.2: what it asks of the registrar", "", []Rule{
		rule("10.2-1", s, "Several contacts in one request, in one field or in several.", "wire.TestSIP_RG_RR_V_016 | wire.TestSIP_RG_RR_V_017"),
		rule("10.2-2", s, "Requests of one Call-ID are ordered by CSeq.", "registrar.TestSection10_3/step 7: order | wire.TestSIP_RG_RR_O_001"),
		rule("10.2.1-1", s+".1", "A 200 to a new registration.", "sipp.rfc3665-2.1 | wire.TestSIP_RG_RR_V_001"),
		rule("10.2.1.1-1", s+".1.1", "A malformed expiry counts as an hour, the default.",
			"registrar.TestSection10_3/step 7: expiry/malformed parameter is the default | registrar.TestSection10_3/step 7: expiry/malformed header field is the default | sipp.row-28"),
		rule("10.2.1.2-1", s+".1.2", "The preference (q) of each contact is kept and listed.", "registrar.TestQValues | wire.TestSIP_RG_RR_V_015"),
		rule("10.2.2-1", s+".2", "expires=0 removes one contact; Expires: 0 those of the request.", "wire.TestSIP_RG_RR_V_006 | wire.TestSIP_RG_RR_V_007"),
		rule("10.2.2-2", s+".2", "\"*\" with Expires: 0 removes all.", "sipp.rfc3665-2.4 | wire.TestSIP_RG_RR_V_008"),
		rule("10.2.3-1", s+".3", "A 200 to whatever request lists all contacts.", "sipp.rfc3665-2.2 | sipp.rfc3665-2.3"),
		rule("10.2.4-1", s+".4", "A refresh gives a binding new time, also from a client that starts anew with another Call-ID.",
			"wire.TestSIP_RG_RR_V_005 | wire.TestSIP_RG_RR_V_018"),
		rule("10.2.8-1", s+".8", "423 tells the least expiry, with which the next attempt is accepted.", "sipp.row-27"),
	}}
}

func section82() Group {
	const s = "RFC 3261 §8.2"
	return Group{"RFC 3261 §8 and §18: the server's part", "", []Rule{
		rule("8.1.1-1", "RFC 3261 §8.1.1", "To, From, Call-ID and CSeq are there, once each and well formed; else 400.", "sipfront.TestWireCases/9 no To | wire.TestRow09Headers"),
		rule("8.2.1-1", s+".1", "A known method that isn't served: 405 with Allow; an unknown one: 501. Methods have case.",
			"sipfront.TestWireCases/11 INVITE | sipfront.TestWireCases/11 unknown method | sipfront.TestWireCases/11 register | sipp.row-11"),
		rule("8.2.2.1-1", s+".2.1", "A Request-URI with a scheme that isn't understood: 416.", "sipfront.TestWireCases/15 Request-URI mailto | sipp.row-15"),
		rule("8.2.2.2-1", s+".2.2", "A merged request (the same From tag, Call-ID and CSeq by two ways): 482.", "").
			but("REGISTERs over UDP are answered without transactions (§8.2.7). The second arrival is either a retransmission or out of order (10.3-7f), so that it changes nothing."),
		rule("8.2.2.3-1", s+".2.3", "Require: see 10.3-2.", "registrar.TestSection10_3/step 2: unknown extension"),
		rule("8.2.3-1", s+".3", "A body of a type that isn't understood: 415.", "").
			but("a body means nothing to a registrar, so it is read and passed over, whatever its type; auth-int covers it (RFC 7616)."),
		rule("8.2.6.1-1", s+".6.1, RFC 4320 §4.1", "No 100 to a REGISTER at once; over UDP one after 3.5 s, if it takes so long.", "sipfront.TestTrying"),
		rule("8.2.6.2-1", s+".6.2", "The answer repeats From, Call-ID, CSeq and all Via values in order, and To with a tag of its own.", "wire.TestAnswerFields"),
		rule("8.2.7-1", s+".7", "Without transactions a retransmission gets the same answer, To tag and all.", "sipfront.TestRetransmission"),
		rule("11.2-1", "RFC 3261 §11.2", "OPTIONS is answered with Allow, Accept and Supported.", "sipfront.TestWhatIsNoRegister"),
		rule("7.1-1", "RFC 3261 §7.1, §21.5.6", "Another SIP version: 505.", "sipfront.TestWireCases/10 SIP/7.0 | sipp.row-10"),
		rule("7.3.1-1", "RFC 3261 §7.3.1", "Names of header fields and parameters have no case; blanks and folding are legal around separators.",
			"sipfront.TestWireCases/1 blanks folded | sipfront.TestFolding | sipp.row-01 | sipp.row-02"),
		rule("7.3.3-1", "RFC 3261 §7.3.3", "Compact forms are the same fields.", "sipfront.TestWireCases/12 compact | sipp.row-12"),
		rule("18.2.1-1", "RFC 3261 §18.2.1", "received is added when the Via's host is not where the request came from.", "sipfront.TestVia"),
		rule("18.2.2-1", "RFC 3261 §18.2.2, RFC 3581 §4", "An answer over UDP goes to the Via's port, or with rport to the source; maddr is followed when it is an address.",
			"sipfront.TestVia | sipfront.TestAnswerPort | wire.TestRow38AnswerPort"),
		rule("18.3-1", "RFC 3261 §18.3", "A datagram is cut at its Content-Length, or refused when it is shorter; a stream without a length that can be believed is answered 400 and closed.",
			"sipfront.TestWireCases/datagram: Content-Length too long | sipfront.TestBrokenStreams | wire.TestRow17And18BrokenStreams"),
		rule("18-1", "RFC 3261 §18", "TLS and WebSocket (RFC 7118).", "").but("the pool listens on UDP and TCP so far."),
	}}
}

func comparison() Group {
	const s, proof = "RFC 3261 §19.1.4", "registrar.TestURIEqual"
	return Group{"RFC 3261 §19.1.4: comparing URIs", "TestURIEqual has the section's own examples, each both ways.", []Rule{
		rule("19.1.4-1", s, "sip and sips are never the same.", proof),
		rule("19.1.4-2", s, "The user part has case, all else has none.", proof),
		rule("19.1.4-3", s, "The order of parameters and of header components is free.", proof),
		rule("19.1.4-4", s, "A character and its escape are the same, unless it is reserved.", proof),
		rule("19.1.4-5", s, "User, password, host and port must match; a port that is written is not the same as none.", proof),
		rule("19.1.4-6", s, "A parameter that both have must match; user, ttl, method, maddr and transport count even if only one has them; others do not.", proof),
		rule("19.1.4-7", s, "Header components are never passed over.", proof),
		rule("19.1.4-8", "RFC 5954 §4.2", "IPv6 addresses are compared by value.", proof),
		rule("19.1.4-9", s, "The spelling that came last is the one listed.", "registrar.TestRegisterCases/case 29 spellings of one contact | sipp.row-29"),
	}}
}
