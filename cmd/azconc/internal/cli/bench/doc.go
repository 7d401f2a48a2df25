// Package bench has azconc bench: azconc beside the loops that programs use without it, measured on the user's own account or on an
// emulator, as a table, as JSON and as a page with plots.
package bench
