package dev

import (
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
)

const connectionVariable = "AZURE_STORAGE_CONNECTION_STRING"

func NewCmd(f *cli.Factory) *cobra.Command {
	return cli.NewGroupCmd("dev", "An emulator on this machine, for development and tests",
		runVerb().Command(f),
		upVerb().Command(f),
		installVerb().Command(f),
	)
}
