// Package engine starts the emulator of azconc dev and azconc demo: the service in memory, or Azurite.
package engine
