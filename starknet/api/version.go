package api

// Version is a version of the Starknet specification, by what is different in it.
type Version struct {
	spec          string // answer of starknet_specVersion
	indexed       bool   // events have the indexes of their transactions and their own
	addressLists  bool   // a filter may list several addresses
	commitments   bool   // blocks have commitments and counts
	pendingParent bool   // the pending block has the hash of its parent
	pendingNumber bool   // the pending block has its number
	l1Tag         bool   // l1_accepted is a block tag
}

// Usual returns the form of answers where the path names no version: that of 0.9.0, which
// starknet.js and Torii require, with the members of adjacent versions that clients
// require. Clients that reject additional members need the path of their version.
func Usual() Version {
	return Version{spec: "0.9.0", indexed: true, pendingParent: true, pendingNumber: true, l1Tag: true}
}

// Versions returns the versions that are served under paths of their own, by the names
// that other nodes give them.
func Versions() map[string]Version {
	return map[string]Version{
		"v0_8":  {spec: "0.8.1", pendingParent: true},
		"v0_9":  {spec: "0.9.0", pendingNumber: true, l1Tag: true},
		"v0_10": {spec: "0.10.0", pendingNumber: true, indexed: true, commitments: true, addressLists: true, l1Tag: true},
	}
}
