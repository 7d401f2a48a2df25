// Package show formats values for people.
package show
