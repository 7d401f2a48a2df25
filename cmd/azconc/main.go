// Command azconc changes, locks and consumes things in Azure Storage without losing anybody's work.
package main

import (
	"context"
	"os"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
)

func main() {
	ctx, stop := cli.WithSignals(context.Background())
	code := cli.Run(ctx, os.Args[1:], cli.SystemStreams(), os.Environ())
	stop()
	os.Exit(code)
}
