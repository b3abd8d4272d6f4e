// Package certificate gets the TLS certificates of a listener: from files, which may be
// renewed while it listens, or from an authority that speaks ACME.
package certificate
