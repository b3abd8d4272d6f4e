package passkey

import (
	"encoding/binary"
	"fmt"
)

// authenticatorData is what an authenticator says and signs:
//
//	offset  bytes
//	     0     32  SHA-256 of the host
//	    32      1  flags
//	    33      4  signature counter, big-endian
//	    37     16  model, if the flag for a credential is set
//	    53      2  length of the credential's ID, big-endian
//	    55         the ID, and the public key as CBOR
//
// Extensions follow as CBOR.
type authenticatorData struct {
	host     [32]byte
	present  bool // the user touched it
	verified bool // it verified the user, by a PIN or a finger
	count    uint32
	id       []byte // of the new credential; nil: none
}

// Flags of authenticatorData.
const (
	flagPresent    = 1 << 0
	flagVerified   = 1 << 2
	flagMayBackUp  = 1 << 3
	flagBackedUp   = 1 << 4
	flagCredential = 1 << 6
	flagExtensions = 1 << 7
)

const (
	offsetFlags = 32
	offsetCount = 33
	offsetModel = 37
	offsetIDLen = 53
	offsetID    = 55
)

func parseAuthenticatorData(b []byte) (d authenticatorData, err error) {
	if len(b) < offsetModel {
		return d, fmt.Errorf("%w: %d bytes of authenticator data (want at least %d)", ErrAnswer, len(b), offsetModel)
	}
	copy(d.host[:], b)
	flags := b[offsetFlags]
	d.present, d.verified = flags&flagPresent != 0, flags&flagVerified != 0
	d.count = binary.BigEndian.Uint32(b[offsetCount:])
	if flags&flagBackedUp != 0 && flags&flagMayBackUp == 0 {
		return d, fmt.Errorf("%w: flags %#x say that it is backed up but cannot be", ErrAnswer, flags)
	}
	if flags&flagCredential == 0 {
		if len(b) > offsetModel && flags&flagExtensions == 0 {
			return d, fmt.Errorf("%w: %d bytes after the authenticator data", ErrAnswer, len(b)-offsetModel)
		}
		return d, nil
	}
	if len(b) < offsetID {
		return d, fmt.Errorf("%w: %d bytes of authenticator data with a credential (want at least %d)", ErrAnswer, len(b), offsetID)
	}
	n := int(binary.BigEndian.Uint16(b[offsetIDLen:]))
	if n == 0 || n > MaxID || len(b) < offsetID+n {
		return d, fmt.Errorf("%w: an ID of %d bytes in %d bytes (want 1 to %d)", ErrAnswer, n, len(b), MaxID)
	}
	d.id = b[offsetID : offsetID+n]
	return d, nil
}
