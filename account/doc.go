// Package account keeps the people who use the service, and the API keys with which
// requests are made.
//
// An account ([Accounts]) is made by registering, where the configuration lets people
// in, with an invitation or without, or by an operator. Its person signs in, with an
// e-mail address and a password so far, and has a [Session] then. An account is not
// its password: whoever finds out in another way who somebody is calls
// [Accounts.Begin].
//
// A key ([Keyring]) is a text of 128 random bits, written as 32 hexadecimal digits. It
// belongs to an account, or to the operator. It is shown once, to whoever creates it;
// what is stored is its SHA-256. That needs no salt and no slow hash, which protect
// what can be guessed: nobody tries 2^128 texts. A key is named, in lists and logs, by
// its [KeyID], which tells nothing about it. It can get another text (be rotated), and
// keep the old one for a while beside it.
//
// Checking a key costs one SHA-256 and one look-up in memory. How long that takes
// may depend on the hash, never on the key's own bytes, so timing a check tells at
// most bits of a hash, from which there is no way back to a key.
//
// All accounts, keys and invitations are in memory, as far as they are looked for; the
// store has every state that they were in. Each change is one row, durable before it
// is acknowledged, and counts for every check that begins later. One process has the
// store open.
//
// What is wrong with what somebody has typed is an [*Invalid], which says in what
// field; who does something too often gets a [*TooSoon]: to sign in, or to change what is
// theirs, since every change stays in the store. All other kinds of errors are
// variables of this package. No error repeats a password, a key or a token.
package account
