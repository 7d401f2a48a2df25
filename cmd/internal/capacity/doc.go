// Package capacity computes what the patterns of azconc cost at scale, and where the limits of the service bind. It is a test
// alone: it measures the numbers that it starts from on a simulated service, and keeps .github/docs/capacity.md.
package capacity
