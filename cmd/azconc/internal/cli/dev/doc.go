// Package dev has the verbs of azconc dev, which run an emulator: the service in memory, or Azurite.
package dev
