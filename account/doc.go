// Package account keeps the API keys that requests are made with.
//
// A key is a secret of 128 random bits, written as 32 hexadecimal digits. It is
// shown once, to whoever creates it; what is stored is its SHA-256. That needs no
// salt and no slow hash, which protect secrets that can be guessed: nobody tries
// 2^128 of them. A key is named, in lists and logs, by its [ID], which tells
// nothing about it.
//
// Checking a key costs one SHA-256 and one look-up in memory. How long that takes
// may depend on the hash, never on the key's own bytes, so timing a check tells at
// most bits of a hash, from which there is no way back to a key.
package account
