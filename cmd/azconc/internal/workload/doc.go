// Package workload has the workloads that azconc bench and the benchmarks of scripts/bench measure: azconc beside the loops that
// programs use without it, on one blob, one entity, one lock and one queue.
//
// A Site is an account and the names of what is created there. Site.Create creates it, Site.Run measures one Cell, and
// Site.Remove deletes it. Everything that is created has a name that begins with azconc-bench, or azconcbench for tables.
//
// The clients of a cell are goroutines with SDK clients of their own, in one process. They pay for the processor time of all, so
// on a service that is near, such as an emulator on the same machine, the processor is a limit for every way alike.
package workload
