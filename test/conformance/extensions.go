package conformance

func digest() Group {
	return Group{"RFC 7616 and RFC 8760: digest; RFC 8898: tokens", "", []Rule{
		rule("7616-1", "RFC 7616 §3.3", "A challenge has realm, nonce, algorithm and qop; domain and opaque if configured.", "registrar.TestChallenge | wire.TestSIP_RG_RR_V_019"),
		rule("7616-2", "RFC 7616 §3.4", "The response is computed as the published examples are.", "registrar.TestDigestExamples"),
		rule("7616-3", "RFC 7616 §3.4", "qop=auth and auth-int, with plain algorithms and -sess; under auth-int a changed body is refused.",
			"registrar.TestAuthenticate | registrar.TestAuthenticate/changed body under auth-int"),
		rule("7616-4", "RFC 7616 §3.4", "An algorithm or qop that wasn't offered is not accepted; a digest without qop only by policy.",
			"registrar.TestAuthenticate/an algorithm that is not offered | registrar.TestAuthenticate/without qop"),
		rule("7616-5", "RFC 7616 §3.3", "stale=true when the digest is right and the nonce too old, and only then.", "wire.TestPolicies/a nonce too old | registrar.TestCase36Stale | wire.TestSIP_RG_RR_V_021"),
		rule("7616-6", "RFC 7616 §3.4, §5.4", "A nonce count counts once. By policy a used one is stale, refused, or not looked at; the client is never banned.",
			"registrar.TestNonceCount | wire.TestRow36Stale"),
		rule("7616-7", "RFC 7616 §5.4", "What is remembered of nonces is bounded and leaves no gap: a recorded request never works again.",
			"registrar.TestNonceCount/what is remembered is bounded, without a gap | registrar.TestReplay"),
		rule("7616-8", "RFC 7616 §3.3", "Nonces can't be made or altered by others, belong to one realm, and are good at every Front End in one round trip, also after the one that gave them was killed.",
			"registrar.TestNonceOfAnotherFrontEnd | wire.TestNonceAtEveryFrontEnd | wire.TestNonceOutlivesItsFrontEnd"),
		rule("7616-9", "RFC 3261 §22.3, RFC 7616 §3.7", "Several Authorization fields: those for other realms and schemes are passed over, and the work is bounded.",
			"registrar.TestSeveralAuthorizations"),
		rule("7616-10", "RFC 7616 §3.4", "A malformed Authorization: 400; one of another scheme or realm: a challenge.", "registrar.TestMalformedAuthorization"),
		rule("7616-11", "RFC 7616 §5", "An unknown user gets what a wrong password gets.", "registrar.TestUnknownUserLooksLikeWrongPassword"),
		rule("7616-12", "RFC 7616 §3.4", "User names with their domain and without.", "registrar.TestAuthenticateUsernames"),
		rule("7616-13", "RFC 7616 §3.5", "Authentication-Info with the server's own proof, and nextnonce.", "").but("no client that was tried asks for it, and nonces are good for many uses."),
		rule("7616-14", "RFC 7616 §3.4.4", "userhash: names as hashes.", "").but("the name is in From and To of the same request."),
		rule("8760-1", "RFC 8760 §2.1", "MD5, SHA-256 and SHA-512-256.", "registrar.TestAuthenticate | registrar.TestDigestExamples"),
		rule("8760-2", "RFC 8760 §2.3", "One challenge for each algorithm, in the order of preference that is configured. MD5 alone by default: a second one breaks several phones.", "registrar.TestChallenge | wire.TestPolicies/two algorithms in order"),
		rule("8898-1", "RFC 8898", "Bearer tokens: challenge with authz_server and scope, invalid_token and insufficient_scope, 403 for another's address-of-record.", "registrar.TestBearer"),
		rule("8898-2", "RFC 8898, RFC 7519", "A token is checked: algorithm, signature, issuer, audience, times, user.", "bearer.TestAlgorithms | bearer.TestRefused | bearer.TestUser"),
	}}
}

func outbound() Group {
	const s = "RFC 5626 "
	return Group{"RFC 5626: client-initiated connections", "", []Rule{
		rule("5626-1", s+"§6", "Instance and reg-id together name a binding: a new Call-ID and a new contact replace it.",
			"registrar.TestRegisterCases/case 25 instance replaces | sipp.row-25"),
		rule("5626-2", s+"§6", "Several flows of one instance stand side by side.", "registrar.TestRegisterCases/several flows of one instance | sipp.outbound"),
		rule("5626-3", s+"§6", "Two different reg-ids in one request: 400.", "registrar.TestRegisterCases/case 26 instance twice | sipp.outbound"),
		rule("5626-4", s+"§6", "reg-id without an instance is passed over.", "registrar.TestRegIDWithoutInstance"),
		rule("5626-5", s+"§6", "Require: outbound in the 200 to a client that supports it, and to no other.", "registrar.TestRegisterCases/outbound | sipp.outbound"),
		rule("5626-6", s+"§6, §11.6", "439 when a proxy stands between that doesn't do outbound (no ob in the last Path).", "registrar.TestRegisterCases/outbound"),
		rule("5626-7", s+"§4.4", "Flow-Timer, if one is configured.", "registrar.TestRegisterCases/outbound | wire.TestPolicies/Flow-Timer"),
		rule("5626-8", s+"§4.4.1, §5.4", "CRLF CRLF on a stream is answered by a CRLF.", "sipfront.TestPings | wire.TestRow19KeepAlive"),
		rule("5626-9", s+"§4.4.2, §8", "A STUN Binding request on the UDP port is answered with the client's address.", "sipfront.TestSTUN"),
		rule("5626-10", s+"§5.3, §7", "A binding is good as long as its flow: when the connection closes it goes, in every copy.", "frontend.TestClosedConnectionTakesItsBinding | wire.TestRow31And40ClosedConnection"),
		rule("5626-11", "the project's own", "A connection whose last binding was replaced elsewhere or expired is closed.", "frontend.TestReplacedConnectionIsClosed | frontend.TestExpiredConnectionIsClosed"),
	}}
}

func path() Group {
	return Group{"RFC 3327: Path", "", []Rule{
		rule("3327-1", "RFC 3327 §5.3", "The Path is stored with the binding, in its order.", "registrar.TestRegisterCases/case 35 Path"),
		rule("3327-2", "RFC 3327 §5.3", "The 200 repeats it, to a client that supports it.", "registrar.TestRegisterCases/case 35 Path | sipp.row-35"),
		rule("3327-3", "RFC 3327 §5.3", "A client that doesn't say so is accepted by default, or refused with 421 by policy.", "registrar.TestRegisterCases/case 35 Path | sipp.row-35"),
		rule("3327-4", "RFC 3327 §4", "A malformed Path: 400.", "sipfront.TestWireCases/Path broken"),
		rule("3327-5", "RFC 3327 §4", "Several fields and several values in one, in order.", "sipfront.TestWireCases/Path"),
	}}
}

func others() Group {
	return Group{"Others", "", []Rule{
		rule("3608-1", "RFC 3608", "Service-Route, if configured: it names the primary, whoever is asked.", "wire.TestPolicies/Service-Route of primary"),
		rule("8599-1", "RFC 8599", "The push parameters of a contact are kept and listed, like all that isn't understood.",
			"registrar.TestParseContacts/push parameters | registrar.TestSection10_3/step 8: the answer"),
		rule("3581-1", "RFC 3581 §4", "rport and received are filled in.", "sipfront.TestVia | sipfront.TestIPv6 | wire.TestRow38AnswerPort"),
		rule("4320-1", "RFC 4320 §4.1", "See 8.2.6.1-1.", "sipfront.TestTrying"),
	}}
}

func gruu() Group {
	const s = "RFC 5627 "
	return Group{"RFC 5627: GRUU", "", []Rule{
		rule("5627-1", s+"§5.2", "The 200 has pub-gruu and temp-gruu for each contact with an instance, to a client that supports gruu.", "sipp.gruu | registrar.TestGRUUInReply | registrar.TestNoGRUU"),
		rule("5627-2", s+"§5.1", "A contact that is its own GRUU: 403.", "sipp.gruu | registrar.TestContactIsItsOwnGRUU"),
		rule("5627-3", s+"§5.1", "Require: gruu is known where there are GRUUs.", "sipp.gruu | registrar.TestNoGRUU"),
		rule("5627-4", s+"§5.1, §5.4", "Each REGISTER makes a fresh temporary GRUU, and those before it go on.", "registrar.TestTemporaryGRUUsAccumulate"),
		rule("5627-5", s+"§5.1, §5.3", "Temporary GRUUs end when the instance registers with another Call-ID, is removed or expires.", "registrar.TestTemporaryGRUUsEnd"),
		rule("5627-6", s+"§6.1", "A GRUU leads to the contacts of its instance, the newest first, and to no other instance.", "registrar.TestGRUUsOfFlows | registrar.TestGRUUOfTwoInstances | registrar.TestTemporaryGRUUMoves"),
		rule("5627-7", s+"§3.1.2", "A temporary GRUU does not tell the user, can't be made without the pool's key, and needs no table: whoever has the key and the bindings can follow it, after a promotion too.",
			"registrar.TestGRUUKeys | registrar.TestGRUUNames"),
		rule("5627-8", s+"§5.1", "pub-gruu and temp-gruu that a client writes itself are not kept.", "registrar.TestClientsOwnGRUUParams"),
	}}
}

func regEvent() Group {
	const s = "RFC 3680 "
	return Group{"RFC 3680 and RFC 6665: registration events", "", []Rule{
		rule("3680-1", s+"§4.1, RFC 6665 §4.2.1", "SUBSCRIBE with Event: reg is accepted; another package: 489 with Allow-Events; other documents: 406.",
			"wire.TestRegEvent | frontend.TestSubscribeAnswers | registrar.TestDecideSubscribe/new | registrar.TestCheckSubscribe"),
		rule("3680-2", s+"§4.4", "3761 s by default, shortened to the longest; too brief: 423.",
			"registrar.TestDecideSubscribe/the default of the package | registrar.TestDecideSubscribe/lowered to the longest | registrar.TestDecideSubscribe/too brief"),
		rule("3680-3", "RFC 6665 §4.2.1", "Refresh, end, fetch, and order by CSeq; an unknown dialog: 481.",
			"registrar.TestDecideSubscribe/refresh | registrar.TestDecideSubscribe/unsubscribe | registrar.TestDecideSubscribe/fetch | registrar.TestDecideSubscribe/out of order | registrar.TestDecideSubscribe/unknown tag"),
		rule("3680-4", s+"§5", "Documents with full and partial state: contacts, ids that stay, events, times, q, unknown parameters.", "wire.TestRegEvent | registrar.TestReginfo | registrar.TestContactIDs"),
		rule("3680-5", s+"§5.1", "Each change has its event: registered, refreshed, shortened, expired, deactivated, probation, unregistered, rejected.", "registrar.TestReginfoEvents"),
		rule("3680-6", s+"§4.7, §5.1", "A NOTIFY for each change of the bindings, and the version grows by one each time; what is not yet told goes with the next one.",
			"wire.TestRegEvent | registrar.TestOwed | registrar.TestMerge"),
		rule("3680-6b", s+"§4.7", "The versions go on when the primary dies, in the same dialogs; a NOTIFY that died with it is made up for.",
			"frontend.TestSubscriptionsOutliveTheirPrimary | frontend.TestNotifyLostWithThePrimary | registrar.TestSubscriptionsStored"),
		rule("3680-7", "RFC 6665 §4.2.2", "The NOTIFY is a request in the dialog: route set, CSeq, Subscription-State.", "registrar.TestNotifyRequest"),
		rule("3680-8", "RFC 6665 §6", "Subscriptions to a user are bounded; a silent watcher delays nobody.", "registrar.TestSubscriptionsPerUser | frontend.TestSilentWatcher"),
		rule("3680-9", s+"§4.6", "A user may watch himself, an appointed watcher everybody; others get 403.", "frontend.TestSubscribeAnswers"),
		rule("3680-10", "RFC 6665 §4.4.1", "A subscription ends when the watcher wants it, when its time is over, and when he is gone.", "frontend.TestSubscriptionsEnd"),
	}}
}
