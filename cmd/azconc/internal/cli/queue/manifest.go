package queue

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/flags"
)

// manifest says what to print in place of consuming.
type manifest struct {
	Form        string // one of forms, "" to consume
	Image       string
	Identity    string
	ClientID    string
	Environment string
	Secret      string
	MinReplicas int
	MaxReplicas int

	account string
	cloud   string   // by KEDA's name; "" for the public one
	suffix  string   // of the queues' endpoints, in a private cloud
	health  int      // port of --metrics; 0 without
	args    []string // of the consumer
}

// The forms of a manifest.
const (
	kedaJob    = "keda-job"
	kedaScaled = "keda"
	acaJob     = "aca-job"
)

const (
	perReplica    = "5"                 // messages for each job or pod: KEDA's default
	secretKey     = "connection-string" // in the secret of --secret
	pollingEvery  = 30                  // seconds, KEDA's default
	beyondDrain   = 15 * time.Second    // the grace of a pod beyond --soft-stop: five seconds of HardStop, and as much for requests
	healthPort    = 9090
	replicaLimit  = 86400 // seconds, after which Container Apps ends a job
	workloadLabel = "azure.workload.identity/use"
)

func (m *manifest) add(set *pflag.FlagSet) {
	set.StringVar(&m.Form, "manifest", "", "print a manifest that scales this consumer, and do not consume: {"+kedaJob+" | "+kedaScaled+" | "+acaJob+"}")
	set.StringVar(&m.Image, "image", "", "with --manifest, the container `image`, which has azconc and the command")
	set.StringVar(&m.Identity, "identity", "", "with --manifest, the service account (default azconc), or the resource `id` of the identity in Container Apps")
	set.StringVar(&m.ClientID, "client-id", "", "with --manifest "+acaJob+", the client `id` of that identity")
	set.StringVar(&m.Environment, "environment", "", "with --manifest "+acaJob+", the resource `id` of the environment")
	set.StringVar(&m.Secret, "secret", "", "with --manifest, the `name` of a secret whose "+secretKey+" the containers sign in with, in place of an identity")
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
	if m.account == "" {
		m.account = account
	}
	cloud, known := clouds[domain]
	switch {
	case account != m.account || u.Scheme != "https" || !strings.HasPrefix(domain, "queue.") || strings.Trim(u.Path, "/") != "":
		return fail.WithHint(fail.Usagef("--manifest: KEDA cannot ask the queue at %s", endpoint), "it asks https://"+cmp.Or(m.account, "<account>")+".queue.<domain>")
	case known:
		m.cloud = cloud
	default:
		m.cloud, m.suffix = "Private", domain
	}
	return nil
}

func (m *manifest) parse(opts *consumeOptions, in cli.Input) error {
	given := func(name string) bool { return in.Flags.Changed(name) }
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
	if flag := in.Flags.Lookup("account-name"); flag != nil {
		m.account = flag.Value.String()
	}
	if m.account == "" && !given("queue-endpoint") {
		m.account = in.Env.Get("AZURE_STORAGE_ACCOUNT")
	}
	if flag := in.Flags.Lookup("queue-endpoint"); flag != nil {
		if err := m.place(flag.Value.String()); err != nil {
			return err
		}
	}
	if flag := in.Flags.Lookup(flags.MetricsName); flag != nil && flag.Changed {
		_, port, err := net.SplitHostPort(flag.Value.String())
		if m.health, _ = strconv.Atoi(port); err != nil || m.health < 1 || m.health > 65535 {
			return fail.Usagef("--metrics %s: a manifest needs the number of a port, such as :9090", flag.Value)
		}
	}
	switch {
	case in.Form != "":
		return fail.WithHint(fail.Usagef("--manifest prints YAML: %s cannot be given", in.Form), "omit it")
	case m.Secret != "" && (m.Form == acaJob || m.Identity != ""):
		return fail.Usagef("--secret cannot be given with --identity, nor with --manifest %s", acaJob)
	case m.MinReplicas < 0 || m.MaxReplicas < 1 || m.MinReplicas > m.MaxReplicas:
		return fail.Usagef("--min-replicas %d and --max-replicas %d: at least 0, and at most the other", m.MinReplicas, m.MaxReplicas)
	case m.account == "" && m.Secret == "":
		return fail.WithHint(fail.Usagef("--manifest without an account"), "give --account-name, or set AZURE_STORAGE_ACCOUNT")
	case m.Image == "":
		return fail.Usagef("--image is missing")
	case strings.ContainsFunc(m.Image, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fail.WithHint(fail.Usagef("--image %q is not the name of an image", m.Image), "a name looks like contoso.azurecr.io/orders:7")
	case m.Form == acaJob && (m.Identity == "" || m.ClientID == "" || m.Environment == ""):
		return fail.Usagef("--manifest %s needs --identity, --client-id and --environment", acaJob)
	case m.Form != acaJob && (m.ClientID != "" || m.Environment != ""):
		return fail.Usagef("--client-id and --environment belong to --manifest %s", acaJob)
	case m.Form == kedaScaled && (given("exit-when-empty") || given("max-messages")):
		return fail.WithHint(fail.Usagef("--manifest %s runs without end: --exit-when-empty and --max-messages cannot be given", kedaScaled), "--manifest "+kedaJob+" starts jobs that end")
	}
	if m.Identity == "" && m.Secret == "" {
		m.Identity = "azconc"
	}
	m.args = []string{"queue", "consume", opts.Queue}
	in.Flags.Visit(func(f *pflag.Flag) {
		if !slices.Contains(ours, f.Name) {
			m.args = append(m.args, "--"+f.Name+"="+f.Value.String())
		}
	})
	switch {
	case m.Form != kedaScaled:
		m.args = append(m.args, "--exit-when-empty")
	case m.health == 0: // its probes need it
		m.health = healthPort
		m.args = append(m.args, "--"+flags.MetricsName+"=:"+strconv.Itoa(healthPort))
	}
	return nil
}

// print prints the manifest.
func (m *manifest) print(_ context.Context, f *cli.Factory, opts *consumeOptions) error {
	var texts []string
	for _, d := range m.documents(opts) {
		texts = append(texts, document(d))
	}
	_, err := f.Out.Write([]byte(strings.Join(texts, "---\n")))
	return err
}

func (m *manifest) documents(opts *consumeOptions) []object {
	switch m.Form {
	case kedaJob:
		return []object{m.authentication(opts), m.scaledJob(opts)}
	case kedaScaled:
		return []object{m.authentication(opts), m.deployment(opts), m.scaledObject(opts)}
	}
	return []object{m.containerAppsJob(opts)}
}

// kubernetes begins an object of Kubernetes. The name of a queue is a name there too.
func kubernetes(version, kind, name string, spec object) object {
	return object{{"apiVersion", version}, {"kind", kind}, {"metadata", object{{"name", name}}}, {"spec", spec}}
}

const kedaVersion = "keda.sh/v1alpha1"

func (m *manifest) authentication(opts *consumeOptions) object {
	spec := object{{"podIdentity", object{{"provider", "azure-workload"}}}}
	if m.Secret != "" {
		spec = object{{"secretTargetRef", list{object{{"parameter", "connection"}, {"name", m.Secret}, {"key", secretKey}}}}}
	}
	return kubernetes(kedaVersion, "TriggerAuthentication", opts.Queue, spec)
}

// trigger is the one of KEDA's scaler azure-queue. The length counts the messages that are being handled: without them, the pods
// that handle them would be taken away.
func (m *manifest) trigger(opts *consumeOptions) object {
	return object{{"type", "azure-queue"}, {"metadata", m.scaling(opts)}}
}

func (m *manifest) scaling(opts *consumeOptions) object {
	all := object{{"queueName", opts.Queue}, {"queueLength", perReplica}, {"queueLengthStrategy", "all"}}
	if m.Secret != "" { // which names the account and its cloud
		return all
	}
	all = append(all, field{"accountName", m.account})
	if m.cloud != "" {
		all = append(all, field{"cloud", m.cloud})
	}
	if m.suffix != "" {
		all = append(all, field{"endpointSuffix", m.suffix})
	}
	return all
}

func (m *manifest) triggers(opts *consumeOptions) list {
	return list{append(m.trigger(opts), field{"authenticationRef", object{{"name", opts.Queue}}})}
}

// scaledJob starts a job per five messages. Its strategy subtracts the running jobs, because the length counts their messages. A
// job that fails is not started again: its messages are in the queue.
func (m *manifest) scaledJob(opts *consumeOptions) object {
	return kubernetes(kedaVersion, "ScaledJob", opts.Queue, object{
		{"jobTargetRef", object{{"backoffLimit", 0}, {"template", m.pod(opts, object{{"restartPolicy", "Never"}}, m.container(opts))}}},
		{"pollingInterval", pollingEvery}, {"minReplicaCount", m.MinReplicas}, {"maxReplicaCount", m.MaxReplicas},
		{"scalingStrategy", object{{"strategy", "default"}}}, {"triggers", m.triggers(opts)},
	})
}

func (m *manifest) scaledObject(opts *consumeOptions) object {
	return kubernetes(kedaVersion, "ScaledObject", opts.Queue, object{
		{"scaleTargetRef", object{{"name", opts.Queue}}}, {"pollingInterval", pollingEvery}, {"minReplicaCount", m.MinReplicas}, {"maxReplicaCount", m.MaxReplicas},
		{"triggers", m.triggers(opts)},
	})
}

func (m *manifest) deployment(opts *consumeOptions) object {
	c := m.container(opts)
	get := func(path string) object {
		return object{{"httpGet", object{{"path", path}, {"port", m.health}}}, {"periodSeconds", 10}}
	}
	c = append(c, field{"readinessProbe", get("/readyz")}, field{"livenessProbe", get("/livez")})
	labels := object{{"app", opts.Queue}}
	return kubernetes("apps/v1", "Deployment", opts.Queue, object{
		{"selector", object{{"matchLabels", labels}}}, {"template", m.pod(opts, nil, c)},
	})
}

// pod is the template of a pod, of which the strictest of the Pod Security Standards ("restricted") takes exception to nothing. Its
// grace is longer than azconc takes to drain after TERM, which the kubelet sends to azconc as the first process: a preStop hook is
// not needed.
func (m *manifest) pod(opts *consumeOptions, spec, c object) object {
	grace := int((opts.SoftStop + beyondDrain + time.Second - 1) / time.Second)
	labels, all := object{{"app", opts.Queue}}, object{}
	if m.Secret == "" {
		labels = append(labels, field{workloadLabel, "true"})
		all = append(all, field{"serviceAccountName", m.Identity})
	}
	c = append(c,
		field{"resources", object{{"requests", object{{"cpu", "100m"}, {"memory", "128Mi"}}}, {"limits", object{{"memory", "1Gi"}}}}},
		field{"securityContext", object{{"allowPrivilegeEscalation", false}, {"readOnlyRootFilesystem", true}, {"capabilities", object{{"drop", list{"ALL"}}}}}},
		field{"volumeMounts", list{object{{"name", "tmp"}, {"mountPath", "/tmp"}}}})
	all = append(append(all, field{"terminationGracePeriodSeconds", grace}), spec...)
	all = append(all,
		field{"securityContext", object{{"runAsNonRoot", true}, {"seccompProfile", object{{"type", "RuntimeDefault"}}}}},
		field{"containers", list{c}},
		field{"volumes", list{object{{"name", "tmp"}, {"emptyDir", object{}}}}})
	return object{{"metadata", object{{"labels", labels}}}, {"spec", all}}
}

func (m *manifest) container(opts *consumeOptions) object {
	args := list{}
	for _, arg := range m.args {
		if m.Form != acaJob {
			arg = strings.ReplaceAll(arg, "$", "$$") // Kubernetes replaces $(NAME), and $$ by $
		}
		args = append(args, arg)
	}
	env := list{object{{"name", "AZURE_STORAGE_ACCOUNT"}, {"value", m.account}}, object{{"name", "AZURE_STORAGE_AUTH_MODE"}, {"value", "login"}}}
	if m.Secret != "" {
		from := object{{"secretKeyRef", object{{"name", m.Secret}, {"key", secretKey}}}}
		env = list{object{{"name", "AZURE_STORAGE_CONNECTION_STRING"}, {"valueFrom", from}}}
	}
	if m.ClientID != "" {
		env = append(env, object{{"name", "AZURE_CLIENT_ID"}, {"value", m.ClientID}})
	}
	return object{{"name", opts.Queue}, {"image", m.Image}, {"command", list{"azconc"}}, {"args", args}, {"env", env}}
}

// containerAppsJob is the file of az containerapp job create --yaml.
func (m *manifest) containerAppsJob(opts *consumeOptions) object {
	rule := append(object{{"name", opts.Queue}}, append(m.trigger(opts), field{"identity", m.Identity})...)
	c := append(m.container(opts), field{"resources", object{{"cpu", 0.5}, {"memory", "1Gi"}}})
	return object{
		{"identity", object{{"type", "UserAssigned"}, {"userAssignedIdentities", object{{m.Identity, object{}}}}}},
		{"properties", object{
			{"environmentId", m.Environment},
			{"configuration", object{
				{"triggerType", "Event"}, {"replicaTimeout", replicaLimit}, {"replicaRetryLimit", 0},
				{"eventTriggerConfig", object{{"parallelism", 1}, {"replicaCompletionCount", 1}, {"scale", object{
					{"minExecutions", m.MinReplicas}, {"maxExecutions", m.MaxReplicas}, {"pollingInterval", pollingEvery}, {"rules", list{rule}},
				}}}},
			}},
			{"template", object{{"containers", list{c}}}},
		}},
	}
}
