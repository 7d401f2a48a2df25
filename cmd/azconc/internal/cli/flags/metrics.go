package flags

import "github.com/spf13/pflag"

// MetricsName is the flag that Metrics adds, by which the frame finds it.
const MetricsName = "metrics"

// Metrics adds the address at which a command shows its metrics and its health.
func Metrics(set *pflag.FlagSet) {
	set.String(MetricsName, "", "serve Prometheus metrics, /livez and /readyz at this `address`, such as 127.0.0.1:9090")
}
