// Package samba puts the locks of a real SMB server behind the real SDK for Azure Files, for tests.
package samba
