package queue

import (
	"cmp"
	_ "embed"
	"io"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
)

// manifest says what to print in place of consuming.
type manifest struct {
	Form        string // "" to consume
	Image       string
	Identity    string
	ClientID    string
	Environment string
	Secret      string
	MinReplicas int
	MaxReplicas int

	Queue   string
	Account string
	Cloud   string // by KEDA's name; "" for the public one
	Health  int    // port of --metrics; 0 without
	Grace   int    // seconds between TERM and KILL
	Args    []string
}

// The forms of a manifest.
const (
	kedaJob    = "keda-job"
	kedaScaled = "keda"
	acaJob     = "aca-job"
)

const (
	beyondDrain = 15 * time.Second // the grace of a pod beyond --soft-stop: five seconds of HardStop, and as much for requests
	healthPort  = 9090
)

// imageName has the characters of a registry, a repository, a tag and a digest.
var imageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]*$`)

//go:embed manifest.yaml.tmpl
var manifestText string

func (m *manifest) add(set *pflag.FlagSet) {
	set.StringVar(&m.Form, "manifest", "", "print a manifest that scales this consumer, and do not consume: {"+kedaJob+" | "+kedaScaled+" | "+acaJob+"}")
	set.StringVar(&m.Image, "image", "", "with --manifest, the container `image`, which has azconc and the command")
	set.StringVar(&m.Identity, "identity", "", "with --manifest, the service account (default azconc), or the resource `id` of the identity in Container Apps")
	set.StringVar(&m.ClientID, "client-id", "", "with --manifest "+acaJob+", the client `id` of that identity")
	set.StringVar(&m.Environment, "environment", "", "with --manifest "+acaJob+", the resource `id` of the environment")
	set.StringVar(&m.Secret, "secret", "", "with --manifest, the `name` of a secret whose connection-string the containers sign in with, in place of an identity")
	set.IntVar(&m.MinReplicas, "min-replicas", 0, "with --manifest, how many jobs or pods there are at least")
	set.IntVar(&m.MaxReplicas, "max-replicas", 10, "with --manifest, how many jobs or pods there are at most")
}

// ours are the flags that are not the container's: those of the manifest, and those that would put a secret into it.
var ours = []string{"manifest", "image", "identity", "client-id", "environment", "secret", "min-replicas", "max-replicas", "account-name", "auth-mode", "exit-when-empty", "output", "quiet", "help"}

var secrets = []string{"connection-string", "account-key", "sas-token", "connection-string-file", "account-key-file", "sas-token-file"}

// clouds are KEDA's names of the clouds, by the domain of their queues (KEDA: pkg/scalers/azure/azure_cloud_environment.go).
var clouds = map[string]string{"queue.core.windows.net": "", "queue.core.chinacloudapi.cn": "AzureChinaCloud", "queue.core.usgovcloudapi.net": "AzureUSGovernmentCloud"}

// place finds the cloud by the endpoint of the queues. KEDA makes its address of the account and the cloud.
func (m *manifest) place(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return fail.Usagef("--queue-endpoint %q is not a URL", endpoint)
	}
	account, domain, _ := strings.Cut(u.Host, ".")
	m.Account = cmp.Or(m.Account, account)
	cloud, known := clouds[domain]
	if !known || account != m.Account || u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return fail.WithHint(fail.Usagef("--manifest: KEDA cannot ask the queue at %s", endpoint), "it asks https://"+m.Account+".queue.<domain of a public or national cloud>")
	}
	m.Cloud = cloud
	return nil
}

func (m *manifest) parse(f *cli.Factory, set *pflag.FlagSet, opts *consumeOptions) error {
	given := set.Changed
	if m.Form == "" {
		for _, name := range ours[1:8] {
			if given(name) {
				return fail.Usagef("--%s needs --manifest", name)
			}
		}
		return nil
	}
	if m.Form != kedaJob && m.Form != kedaScaled && m.Form != acaJob {
		return fail.Usagef("--manifest %q is neither %s, %s nor %s", m.Form, kedaJob, kedaScaled, acaJob)
	}
	for _, name := range secrets {
		if given(name) {
			return fail.WithHint(fail.Usagef("--%s and --manifest cannot both be given", name), "the containers sign in with a workload identity, or by --secret: give --account-name alone")
		}
	}
	value := func(name string) string {
		if flag := set.Lookup(name); flag != nil {
			return flag.Value.String()
		}
		return ""
	}
	if m.Account = value("account-name"); m.Account == "" && !given("queue-endpoint") {
		m.Account = f.Env.Get("AZURE_STORAGE_ACCOUNT")
	}
	if err := m.place(value("queue-endpoint")); err != nil {
		return err
	}
	if given(flags.MetricsName) {
		_, port, err := net.SplitHostPort(value(flags.MetricsName))
		if m.Health, _ = strconv.Atoi(port); err != nil || m.Health < 1 || m.Health > 65535 {
			return fail.Usagef("--metrics %s: a manifest needs the number of a port, such as :9090", value(flags.MetricsName))
		}
	}
	switch {
	case !f.Text():
		return fail.Usagef("--manifest prints YAML: -o and --query cannot be given")
	case m.Secret != "" && (m.Form == acaJob || m.Identity != ""):
		return fail.Usagef("--secret cannot be given with --identity, nor with --manifest %s", acaJob)
	case m.MinReplicas < 0 || m.MaxReplicas < 1 || m.MinReplicas > m.MaxReplicas:
		return fail.Usagef("--min-replicas %d and --max-replicas %d: at least 0, and at most the other", m.MinReplicas, m.MaxReplicas)
	case m.Account == "" && m.Secret == "":
		return fail.WithHint(fail.Usagef("--manifest without an account"), "give --account-name, or set AZURE_STORAGE_ACCOUNT")
	case m.Image == "":
		return fail.Usagef("--image is missing")
	case !imageName.MatchString(m.Image):
		return fail.WithHint(fail.Usagef("--image %q is not the name of an image", m.Image), "it looks like ghcr.io/contoso/orders:7")
	case strings.ContainsFunc(m.Identity+m.ClientID+m.Environment+m.Secret, unicode.IsSpace):
		return fail.Usagef("--identity, --client-id, --environment or --secret has white space, which no such name has")
	case m.Form == acaJob && (m.Identity == "" || m.ClientID == "" || m.Environment == ""):
		return fail.Usagef("--manifest %s needs --identity, --client-id and --environment", acaJob)
	case m.Form != acaJob && (m.ClientID != "" || m.Environment != ""):
		return fail.Usagef("--client-id and --environment belong to --manifest %s", acaJob)
	case m.Form == kedaScaled && (given("exit-when-empty") || given("max-messages")):
		return fail.WithHint(fail.Usagef("--manifest %s runs without end: --exit-when-empty and --max-messages cannot be given", kedaScaled), "--manifest "+kedaJob+" starts jobs that end")
	}
	m.Queue, m.Identity = opts.Queue, cmp.Or(m.Identity, "azconc")
	// The kubelet sends TERM to azconc, as the first process: a preStop hook is not needed.
	m.Grace = int((opts.SoftStop + beyondDrain + time.Second - 1) / time.Second)
	args := []string{"queue", "consume", opts.Queue}
	set.Visit(func(f *pflag.Flag) {
		if !slices.Contains(ours, f.Name) {
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	switch {
	case m.Form != kedaScaled:
		args = append(args, "--exit-when-empty")
	case m.Health == 0: // its probes need it
		m.Health = healthPort
		args = append(args, "--"+flags.MetricsName+"=:"+strconv.Itoa(healthPort))
	}
	for _, arg := range args {
		if m.Form != acaJob {
			arg = strings.ReplaceAll(arg, "$", "$$") // Kubernetes replaces $(NAME), and $$ by $
		}
		m.Args = append(m.Args, arg)
	}
	return nil
}

// print prints the manifest. Its length of a queue counts the messages that are being handled: without them, the pods that handle them
// would be taken away.
func (m *manifest) print(w io.Writer) error {
	return template.Must(template.New("manifest").Parse(manifestText)).Execute(w, m)
}
