package main

// storeBreaks break what the ledger keeps.
var storeBreaks = []broken{
	{
		promise: "Then it is sent once (§5), the outcome is recorded durably", how: "what isn't synced yet is shown",
		edits: []edit{{"ledger/badgerstore/persist.go", "pointBeforeHighWater.Pass()\n", "pointBeforeHighWater.Pass()\n\ts.gate.publish(b.gate, b.written, func(*known) {})\n\ts.horizon.reached(b.number)\n"}},
		tests: []string{"ledger/badgerstore.TestNothingIsShownBeforeItsSync"},
	},
	{
		promise: "A mutation costs two synced commits", how: "a command is acknowledged before the journal is synced",
		edits: []edit{{"ledger/badgerstore/journal.go", "if err := h.sync(); err != nil {", "if err := error(nil); err != nil {"}},
		tests: []string{"ledger/badgerstore.TestALossOfPowerBeforeEachSync"},
	},
	{
		promise: "A mutation costs two synced commits", how: "a commit too long for the journal is acknowledged before the log is synced",
		edits: []edit{{"ledger/badgerstore/persist.go", "\tif err := s.log.sync(); err != nil {", "\tif err := error(nil); err != nil {"}},
		tests: []string{"ledger/badgerstore.TestALossOfPowerBeforeEachSync"},
	},
	{
		promise: "A mutation costs two synced commits", how: "the engine has a commit before that is durable",
		edits: []edit{{"ledger/badgerstore/persist.go", "pointBeforeHighWater.Pass()\n", "pointBeforeHighWater.Pass()\n\tif err := s.give(b.entries.list); err != nil {\n\t\treturn err\n\t}\n"}},
		tests: []string{"ledger/badgerstore.TestTheEngineHasNoCommitBeforeItIsDurable"},
	},
	{
		promise: "A mutation costs two synced commits", how: "the journal is written over before the log is synced",
		edits: []edit{{"ledger/badgerstore/giving.go", "if err := s.log.sync(); err != nil {", "if err := error(nil); err != nil {"}},
		tests: []string{"ledger/badgerstore.TestALossOfPowerBeforeEachSync"},
	},
	{
		promise: "A mutation costs two synced commits", how: "the mark moves before the log is synced",
		edits: []edit{{
			"ledger/badgerstore/giving.go", "\t\tif err := s.log.sync(); err != nil {\n\t\t\treturn err\n\t\t}\n\t\ts.giving.synced()\n",
			"\t\ts.giving.synced()\n\t\tif err := s.log.sync(); err != nil {\n\t\t\treturn err\n\t\t}\n",
		}},
		tests: []string{"ledger/badgerstore.TestTheMarkWaitsForTheLog"},
	},
	{
		promise: "A mutation costs two synced commits", how: "the log that ended is not synced when a new one has begun",
		edits: []edit{{"ledger/badgerstore/logsync.go", "\t\tif err := l.told(l.file.Name(), datasync(l.file)); err != nil {\n\t\t\treturn errors.Join", "\t\tif err := error(nil); err != nil {\n\t\t\treturn errors.Join"}},
		tests: []string{"ledger/badgerstore.TestALossOfPowerBeforeEachSync"},
	},
	{
		promise: "A mutation costs two synced commits", how: "what the engine lost is not put back",
		edits: []edit{{"ledger/badgerstore/putback.go", "\tif len(a.after) == 0 || a.mark.ID", "\tif len(a.after) >= 0 || a.mark.ID"}},
		tests: []string{"ledger/badgerstore.TestTheHighWaterMarkSurvivesALossOfPower"},
	},
	{
		promise: "A mutation costs two synced commits", how: "a commit that was put back over later ones stays there",
		edits: []edit{{"ledger/badgerstore/putback.go", "(!ok || version < before)", "(!ok && version < before)"}},
		tests: []string{"ledger/badgerstore.TestAnyPartOfTheEngineIsPutBack"},
	},
	{
		promise: "A mutation costs two synced commits", how: "what is missing is put back over what came after it",
		edits: []edit{{
			"ledger/badgerstore/putback.go", "\tfor _, j := range missing {\n",
			"\tfor _, j := range missing {\n\t\tthere := false\n\t\t_ = s.db.View(func(txn *badger.Txn) (err error) {\n" +
				"\t\t\t_, there, err = commitVersion(snapshot{txn}, j.tip)\n\t\t\treturn err\n\t\t})\n\t\tif there {\n\t\t\tcontinue\n\t\t}\n",
		}},
		tests: []string{"ledger/badgerstore.TestAnyPartOfTheEngineIsPutBack"},
	},
	{
		promise: "Every change is one transaction that expects a state and a version", how: "the store takes a record of an older version",
		edits: []edit{{"ledger/badgerstore/tx.go", "if m.Version != version+1 {", "if m.Version > version+1 {"}},
		tests: []string{"ledger/badgerstore.TestConformance"},
	},
	{
		promise: "Events form a hash chain", how: "an event that doesn't follow the one before it is read",
		edits: []edit{{"ledger/badgerstore/events.go", "if e.prev != prev {", "if e.prev != prev && seq == 0 {"}},
		tests: []string{"ledger/badgerstore.TestVerifyFindsAnEventThatWasChanged"},
	},
	{
		promise: "is missing although `ledger.id` in the configuration", how: "a ledger that was promised is made anew",
		edits: []edit{{"ledger/badgerstore/open.go", "case !accepted:\n\t\t\treturn s, fmt.Errorf(\"%w: ledger.id names", "case accepted:\n\t\t\treturn s, fmt.Errorf(\"%w: ledger.id names"}},
		tests: []string{"ledger/badgerstore.TestRefusals"},
	},
	{
		promise: "is missing although `ledger.id` in the configuration", how: "a folder without data is a first start, whatever else is there",
		edits: []edit{{"ledger/badgerstore/open.go", "func (f signs) none() bool { return !f.identity && !f.data && !f.water && !f.movable }", "func (f signs) none() bool { return !f.data }"}},
		tests: []string{"ledger/badgerstore.TestRefusals"},
	},
	{
		promise: "is another one than `ledger.id` says", how: "another ledger is taken",
		edits: []edit{{"ledger/badgerstore/open.go", "if c.ID == \"\" || found.ID == c.ID {", "if c.ID != found.ID || found.ID == c.ID {"}},
		tests: []string{"ledger/badgerstore.TestRefusals"},
	},
	{
		promise: "is damaged: every value has a checksum", how: "checksums aren't compared",
		edits: []edit{{"ledger/badgerstore/codec.go", "if binary.LittleEndian.Uint32(sealed[2:]) != checksum(key, sealed) {", "if binary.LittleEndian.Uint32(sealed[2:]) == 0 && checksum(key, sealed) != 0 {"}},
		tests: []string{"ledger/badgerstore.TestUnsealRefuses"},
	},
	{
		promise: "ends before what was acknowledged", how: "the high-water mark isn't looked at",
		edits: []edit{{"ledger/badgerstore/load.go", "if err := s.checkHighWater(src); err != nil {", "if err := s.checkHighWater(src); err != nil && s.config.Restored {"}},
		tests: []string{"ledger/badgerstore.TestRefusals", "ledger/badgerstore.TestALogThatWasEmptiedIsALoss"},
	},
	{
		promise: "ends before what was acknowledged", how: "the high-water mark isn't written",
		edits: []edit{{"ledger/badgerstore/highwater.go", "if _, err := h.file.WriteAt(slot, n*slotSize); err != nil {", "if _, err := h.file.ReadAt(slot, n*slotSize); err != nil {"}},
		tests: []string{"ledger/badgerstore.TestALossOfPowerBeforeEachSync", "ledger/badgerstore.TestEitherMarkWillDo"},
	},
	{
		promise: "ends before what was acknowledged", how: "the journal has one copy of a commit",
		edits: []edit{{"ledger/badgerstore/journal.go", "for copies := range int64(2) {", "for copies := range int64(1) {"}},
		tests: []string{"ledger/badgerstore.TestOneDamageOfTheJournalLosesNothing"},
	},
	{
		promise: "ends before what was acknowledged", how: "a commit that is missing from the journal is where it ends",
		edits: []edit{{"ledger/badgerstore/journal.go", "if len(out) < len(found) {", "if len(out) < len(found) && len(found) == 0 {"}},
		tests: []string{"ledger/badgerstore.TestAHoleInTheJournalIsDamage"},
	},
	{
		promise: "A mutation costs two synced commits", how: "a parcel of the backlog is used again while a batch looks into it",
		edits: []edit{{"ledger/badgerstore/backlog.go", "\tif p.pins == 0 {\n\t\tl.recycle(p)", "\tif p.pins >= 0 {\n\t\tl.recycle(p)"}},
		tests: []string{"ledger/badgerstore.TestTheBacklogHoldsWhatTheEngineLacks"},
	},
	{
		promise: "A mutation costs two synced commits", how: "what a parcel holds is written over in place",
		edits: []edit{{"ledger/badgerstore/backlog.go", "\t\tknown.sealed = sealed\n", "\t\tif known.sealed != nil {\n\t\t\tknown.sealed = append(known.sealed[:0], sealed...)\n\t\t}\n"}},
		tests: []string{"ledger/badgerstore.TestTheBacklogHoldsWhatTheEngineLacks"},
	},
	{
		promise: "A mutation costs two synced commits", how: "what a commit removed is read from the engine, which has it still",
		edits: []edit{{"ledger/badgerstore/backlog.go", "\tsealed, ok := l.s.backlog.value(k)\n\tif !ok {\n", "\tsealed, ok := l.s.backlog.value(k)\n\tif !ok || sealed == nil {\n"}},
		tests: []string{"ledger/badgerstore.TestEachReadSeesWhatTheEngineLacks"},
	},
	{
		promise: "A mutation costs two synced commits", how: "a claim is judged by a record that a commit has removed",
		edits: []edit{{"ledger/badgerstore/see.go", "lately.value(mutationKey(k)); ok && l.record == nil {", "lately.value(mutationKey(k)); ok && l.record == nil && k == (ledger.Key{}) {"}},
		tests: []string{"ledger/badgerstore.TestASightIsOfWhatTheEngineLacks"},
	},
	{
		promise: "A mutation costs two synced commits", how: "listings don't wait for what the engine lacks",
		edits: []edit{{"ledger/badgerstore/store.go", "\tif err := s.giving.await(n, s.Healthy); err != nil {", "\tif err := s.giving.await(0*n, s.Healthy); err != nil {"}},
		tests: []string{"ledger/badgerstore.TestAllThatWasAnsweredIsListed"},
	},
	{
		promise: "ends before what was acknowledged", how: "the journal is written over what counts",
		edits: []edit{{"ledger/badgerstore/journal.go", "if !h.fits(h.settled) {", "if !h.fits(h.written) {"}},
		tests: []string{"ledger/badgerstore.TestTheJournalIsNeverWrittenOver"},
	},
	{
		promise: "is damaged: every value has a checksum", how: "content passes for a commit of the journal",
		edits: []edit{{"ledger/badgerstore/journal.go", "|| !bytes.Equal(b[:journalKey], key) {", "|| bytes.Equal(b[:journalKey], nil) {"}},
		tests: []string{"ledger/badgerstore.TestContentIsNeverTakenForACommit"},
	},
	{
		promise: "was written by a newer version", how: "a newer format is read",
		edits: []edit{{"ledger/badgerstore/identity.go", "if i.Format > format {", "if i.Format > format+1000 {"}},
		tests: []string{"ledger/badgerstore.TestRefusals"},
	},
	{
		promise: "A consistent older copy of the whole folder", how: "an older copy is taken, although the high-water file says more",
		edits: []edit{{"ledger/badgerstore/load.go", "if err := s.checkHighWater(src); err != nil {", "if err := s.checkHighWater(src); err != nil && s.config.Restored {"}},
		tests: []string{"ledger/badgerstore.TestOlderCopyIsFoundByAHighWaterFileElsewhere"},
	},
	{
		promise: "If a sync fails, or hasn't ended after 30 s", how: "a sync that failed is forgotten",
		edits: []edit{{"ledger/badgerstore/persist.go", "s.poison(err)\n\t\terr = s.Healthy()", "err = s.Healthy()"}},
		tests: []string{"ledger/badgerstore.TestHighWaterFailurePoisons"},
	},
	{
		promise: "When the disk has less than `ledger.min_free` left", how: "a full disk takes new mutations",
		edits: []edit{{"ledger/badgerstore/space.go", "if s.free < limit {", "if s.free < limit/1000 {"}},
		tests: []string{"ledger/badgerstore.TestLowSpaceRefusesNewMutationsOnly"},
	},
	{
		promise: "When the disk has less than `ledger.min_free` left", how: "a full disk takes no outcomes",
		edits: []edit{{"ledger/badgerstore/tx.go", "if m.Version == 1 && m.Undo == nil {", "if m.Version > 0 {"}},
		tests: []string{"ledger/badgerstore.TestLowSpaceRefusesNewMutationsOnly"},
	},
	{
		promise: "What tells it from others stays", how: "contents are swept that a record came to name",
		edits: []edit{{"ledger/badgerstore/sweepbodies.go", "; named || !t.store.pending.removing(name) {", "; !t.store.pending.removing(name) && !named {"}},
		tests: []string{"ledger/badgerstore.TestSweepGivesWayToNewNames"},
	},
	{
		promise: "A damaged value stops the ledger; a damaged long body", how: "a damaged long body isn't reported",
		edits: []edit{{"ledger/badgerstore/scrub.go", "done.Damaged = append(done.Damaged, hex.EncodeToString(f.sum[:]))", "_ = hex.EncodeToString"}},
		tests: []string{"ledger/badgerstore.TestScrub"},
	},
}
