package arrows

// topLevel is everything that may lie at the top beside names that begin with a dot.
var topLevel = []string{
	"LICENSE", "README.md", "cmd", "go.mod", "go.sum", "go.work", "go.work.sum", "idempotent", "optimistic", "pessimistic", "pkg", "scripts",
}

// maxLines is the length at which a file has more than one subject.
const maxLines = 450

// A package with more than that has more than one subject. Files of tests do not count. Names are those that go doc lists:
// exported functions, types, constants and variables, each name of a group by itself.
const (
	maxFiles    = 30
	maxExported = 60
)

// layer says what the packages in a folder may import of this module. Folders stand for all that is below them; the
// longest one that fits decides. A folder may always import from itself.
type layer struct {
	dir string
	may []string
	why string
}

var layers = []layer{
	{"cmd/azconc", []string{"cmd/azconc/internal/cli", "cmd/azconc/internal/cli/root"},
		"main gives the command line its process and knows nothing else"},
	{"cmd/azconc/internal/proc", nil,
		"proc runs commands and knows nothing of Azure"},
	{"cmd/azconc/internal/jsonform", nil,
		"jsonform edits JSON texts and knows nothing of Azure"},
	{"cmd/azconc/internal/tfstate", []string{"optimistic", "pessimistic", "pkg"},
		"tfstate knows the protocol of Terraform's states and no command line"},
	{"cmd/azconc/internal/azaccount", []string{"pkg"},
		"azaccount finds an account in flags and environment and knows no command line"},
	{"cmd/azconc/internal/conformance", []string{"pkg", "cmd/azconc/internal/azaccount"},
		"the conformance suite asks an account, like a test"},
	{"cmd/azconc/internal/cli", []string{"optimistic", "pessimistic", "idempotent", "pkg", "cmd/azconc/internal/azaccount", "cmd/azconc/internal/proc", "cmd/azconc/internal/jsonform", "cmd/azconc/internal/tfstate", "cmd/internal/demo/scene"},
		"the command line is the only one that knows everything"},
	{"cmd/internal", []string{"optimistic", "pessimistic", "idempotent", "pkg"},
		"the programs that examine azconc put the libraries to work, like a test: they do not know the command line"},
	{"idempotent", []string{"optimistic", "pessimistic", "pkg"},
		"idempotent builds on the two others"},
	{"idempotent/once", []string{"idempotent/internal", "optimistic", "pessimistic", "pkg"},
		"once, manual and redrive do not know each other, and once and redrive not the consumer"},
	{"idempotent/redrive", []string{"idempotent/internal", "optimistic", "pkg"},
		"once, manual and redrive do not know each other, and once and redrive not the consumer"},
	{"optimistic", []string{"pkg"},
		"optimistic and pessimistic do not know each other: what they share is a small type in pkg"},
	{"optimistic/internal/protocol", []string{"pkg"},
		"the protocol is what package optimistic and the packages below it are made of"},
	{"optimistic/blobs", []string{"optimistic", "optimistic/internal", "pkg"},
		"blobs, tables and settings do not know each other: a program links the SDK of what it uses"},
	{"optimistic/appends", []string{"optimistic", "optimistic/internal", "pkg"},
		"blobs, appends and pages do not know each other: what they share is in internal/anyblob"},
	{"optimistic/pages", []string{"optimistic", "optimistic/internal", "pkg"},
		"blobs, appends and pages do not know each other: what they share is in internal/anyblob"},
	{"optimistic/internal/anyblob", []string{"optimistic", "optimistic/internal", "pkg"},
		"anyblob is what the packages of blobs are made of, on top of package optimistic"},
	{"optimistic/tables", []string{"optimistic", "optimistic/internal", "pkg"},
		"blobs, tables and settings do not know each other: a program links the SDK of what it uses"},
	{"optimistic/settings", []string{"optimistic", "optimistic/internal", "pkg"},
		"blobs, tables and settings do not know each other: a program links the SDK of what it uses"},
	{"optimistic/sharded", []string{"optimistic", "pkg"},
		"a counter is made of targets, whatever their service, and uses package optimistic as its users do"},
	{"pessimistic", []string{"pkg"},
		"optimistic and pessimistic do not know each other: what they share is a small type in pkg"},
	{"pkg", []string{"pkg"},
		"pkg is what everything else stands on"},
	{"pkg/adapters", []string{"optimistic", "pessimistic", "idempotent", "pkg"},
		"an adapter is a module of its own, which puts the libraries to work for another library"},
}

// ban keeps an import to some folders, on top of the layers.
type ban struct {
	path  string   // an import path; one that begins with "./" is of this module. Packages below it are meant too
	only  []string // the folders that may import it
	tests bool     // whether test files are held to it too
	why   string
}

var bans = []ban{
	{"github.com/spf13", []string{"cmd/azconc/internal/cli", "cmd/azconc/internal/release"}, true,
		"only the command line knows cobra, and the release, which makes manual pages of its commands"},
	{"go.opentelemetry.io", []string{"pkg/telemetry", "cmd/azconc/internal/cli/monitor"}, false,
		"a program that uses the libraries compiles no telemetry that it does not ask for"},
	{"./pkg/telemetry", []string{"pkg/telemetry", "cmd/azconc/internal/cli/monitor"}, false,
		"the libraries know the hooks, not what follows them"},
	{"github.com/prometheus", []string{"cmd/azconc/internal/cli/monitor"}, false,
		"metrics are served by commands that run long"},
	{"github.com/jmespath", []string{"cmd/azconc/internal/cli/report"}, true,
		"--query is one flag of the command line, and one place decides the form of results"},
	{"charm.land", []string{"cmd/azconc/internal/cli/live"}, true,
		"the screen of azconc top is all that needs bubbletea: no program that uses the libraries compiles it"},
	{"github.com/charmbracelet", []string{"cmd/azconc/internal/cli/live"}, true,
		"bubbletea's own measure of text keeps the lines of that screen within the terminal"},
	{"./pkg/aztest", []string{"pkg/aztest", "cmd/internal/demo", "optimistic/internal/optest", "pessimistic/internal/pesstest", "cmd/azconc/internal/cli/engine"}, false,
		"a service in memory must never reach production code; engine serves it as an emulator, which keeps nothing and says so"},
	{"./pkg/azurite", []string{"pkg/azurite", "cmd/azconc/internal/cli"}, false,
		"a library does not start processes; azconc dev and the demo do"},
	{"testing", []string{"pkg/aztest", "pkg/azurite/azuritetest", "optimistic/internal/optest", "pessimistic/internal/pesstest"}, false,
		"package testing belongs into tests and into what is made for them"},
}

// word keeps an identifier to some folders. Tests are free of it.
type word struct {
	name string
	only []string // the folders that may mention it
	why  string
}

var words = []word{
	{"MaxRetries", []string{"pkg/wire", "pkg/aztest"},
		"requests are sent again by package wire, which turns the SDK's retries off"},
}

// wall keeps SDKs out of a package and of everything it imports, so that a program links only those it uses.
type wall struct {
	pkg       string
	mayNotUse []string // what follows the SDK's import path
}

var walls = []wall{
	{"optimistic", []string{"storage/", "data/"}},
	{"optimistic/blobs", []string{"data/aztables", "storage/azqueue", "storage/azfile"}},
	{"optimistic/appends", []string{"data/aztables", "storage/azqueue", "storage/azfile"}},
	{"optimistic/pages", []string{"data/aztables", "storage/azqueue", "storage/azfile"}},
	{"optimistic/tables", []string{"storage/"}},
	{"optimistic/settings", []string{"data/aztables", "storage/azfile"}},
	{"optimistic/sharded", []string{"storage/", "data/"}},
	{"pkg/azerr", []string{"storage/", "data/"}},
	{"pkg/wire", []string{"storage/", "data/"}},
	{"pkg/retry", []string{"storage/", "data/"}},
	{"pkg/fence", []string{"storage/", "data/"}},
	{"pkg/lease", []string{"storage/", "data/"}},
}
