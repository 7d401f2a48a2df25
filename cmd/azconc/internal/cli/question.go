package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
)

// Confirmed asks a question on stderr, and reports whether the line that follows on stdin is yes. It ends with ctx.
func (f *Factory) Confirmed(ctx context.Context, question string) (bool, error) {
	fmt.Fprint(f.Err, "azconc: "+question)
	f.Redactor.Flush()
	in, _, err := f.OpenContent(ctx, "-")
	if err != nil {
		return false, err
	}
	defer func() { _ = in.Close() }()
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && err != io.EOF { //nolint:errorlint // a reader returns io.EOF itself
		return false, err
	}
	return strings.TrimSpace(answer) == "yes", nil
}
