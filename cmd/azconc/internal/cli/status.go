package cli

// CommandStatus is the end of a command that is passed on as azconc's own.
type CommandStatus struct {
	Code int
	Text string // empty when the command has said itself what there is to say
}

func (e *CommandStatus) Error() string { return e.Text }

func (e *CommandStatus) Verdict() Verdict { return Verdict{Code: e.Code, Outcome: "command_failed"} }
