package main

// ofStates are mistakes in the protocol of Terraform's states: azconc tf.
var ofStates = []mutant{
	{
		name: "a LOCK whose answer was lost is refused when it is sent again",
		file: "cmd/azconc/internal/tfstate/lock.go",
		old:  "mine := h.info.ID == info.ID",
		new:  "mine := h.info.ID == info.ID+\"x\"",
		pkg:  "./cmd/azconc/internal/tfstate", run: "TestALostAnswerToTheClient",
	},
	{
		name: "an UNLOCK whose answer was lost is refused when it is sent again",
		file: "cmd/azconc/internal/tfstate/lock.go",
		old:  "if info.ID == s.released {",
		new:  "if info.ID == s.released+\"x\" {",
		pkg:  "./cmd/azconc/internal/tfstate", run: "TestALostAnswerToTheClient",
	},
	{
		name: "a state is written over a version that the client has not read",
		file: "cmd/azconc/internal/tfstate/write.go",
		old:  "case at.ETag != s.base.etag:",
		new:  "case at.ETag != s.base.etag && id == \"\":",
		pkg:  "./cmd/azconc/internal/tfstate", run: "TestAStateThatWasReadBeforeItWasLocked",
	},
	{
		name: "bytes that are stored already are a success without the lock",
		file: "cmd/azconc/internal/tfstate/write.go",
		old:  "case stored && id != \"\":",
		new:  "case stored && id == \"x\":",
		pkg:  "./cmd/azconc/internal/tfstate", run: "TestAPausedRunCannotOverwrite",
	},
	{
		name: "a holder that is not described has no ID, so clients do not wait for it",
		file: "cmd/azconc/internal/tfstate/lock.go",
		old:  "Info{ID: \"unknown\"",
		new:  "Info{ID: \"\"",
		pkg:  "./cmd/azconc/internal/tfstate", run: "TestAHolderThatIsNotDescribed",
	},
	{
		name: "a client that has died keeps its lock while azconc lives",
		file: "cmd/azconc/internal/tfstate/session.go",
		old:  "if h := s.held; h != nil && s.unlock(h).status == http.StatusOK {",
		new:  "if h := s.held; h != nil {",
		pkg:  "./cmd/azconc/internal/tfstate", run: "TestAClientKilledAtEveryRequest",
	},
	{
		name: "the description of a holder replaces the metadata of others, which azurerm keeps",
		file: "cmd/azconc/internal/tfstate/look.go",
		old:  "if *m == nil {",
		new:  "if *m == nil || len(*m) > 0 {",
		pkg:  "./cmd/azconc/internal/tfstate", run: "TestAzurermAndAzconcTakeTurns",
	},
	{
		name: "a state is stored with another content type than azurerm's",
		file: "cmd/azconc/internal/tfstate/session.go",
		old:  "return \"application/json\"",
		new:  "return \"application/octet-stream\"",
		pkg:  "./cmd/azconc/internal/tfstate", run: "TestAzurermAndAzconcTakeTurns",
	},
	{
		name: "a lock without a description is broken although another client holds it by then",
		file: "cmd/azconc/internal/tfstate/look.go",
		old:  "Conditions: lease.Conditions{IfMatch: seen}",
		new:  "Conditions: lease.Conditions{}",
		pkg:  "./cmd/azconc/internal/cli/root", run: "TestOnlyTheLockThatWasShownIsReleased",
	},
	{
		name: "an address that an earlier init has stored is not refused",
		file: "cmd/azconc/internal/tfdir/check.go",
		old:  "if config[name] != nil &&",
		new:  "if config[name] == name &&",
		pkg:  "./cmd/azconc/internal/tfdir", run: "TestWhichDirectoriesTakeTheirBackendFromTheEnvironment",
	},
	{
		name: "a command that a key has interrupted gets a second interrupt",
		file: "cmd/azconc/internal/cli/tf/signals.go",
		old:  "\tif !s.asked {\n",
		new:  "\tif s.out != nil {\n",
		pkg:  "./cmd/azconc", run: "TestATerraformAtATerminalGetsOneInterrupt",
	},
}
