package cli

import (
	"errors"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
)

// missing names the container, table, queue or share that does not exist, if err reports that: by its code, or because the
// command concerns no other resource.
func missing(err error, command, on string) (noun, name string) {
	name, _, _ = strings.Cut(on, "/")
	switch azerr.Classify(err).Code {
	case "ContainerNotFound":
		noun = "container"
	case "TableNotFound":
		noun = "table"
	case "QueueNotFound":
		noun = "queue"
	case "ShareNotFound":
		noun = "share"
	default:
		switch group, _, _ := strings.Cut(command, " "); {
		case on == "" || strings.Contains(on, "/"):
			return "", ""
		case group == "container" || group == "table" || group == "share":
			return group, name
		}
		return "", ""
	}
	if answer, ok := errors.AsType[*azcore.ResponseError](err); ok && answer.RawResponse != nil && answer.RawResponse.Request != nil {
		path, _, _ := strings.Cut(resource.Path(answer.RawResponse.Request.URL.String()), "/")
		if path, _, _ = strings.Cut(path, "("); !strings.HasPrefix(path, "$batch") && path != "" {
			name = path
		}
	}
	return noun, name
}

// createHint is the command that creates the missing resource, unless the failed command was a deletion.
func createHint(command, noun, name string) string {
	if noun == "" || strings.HasSuffix(command, "delete") && strings.HasPrefix(command, noun) {
		return ""
	}
	return "azconc " + noun + " create " + ShellQuote(name) + " creates it"
}
