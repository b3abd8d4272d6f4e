// Package account stores the service's user accounts, invitations and API keys.
//
// An account ([Accounts]) is created by registration, with or without an invitation
// depending on the configuration, or by an operator. Its user signs in and receives a
// [Session]: with an e-mail address and a password ([Accounts.SignIn]), with a passkey
// ([Accounts.SignInWithPasskey]), or at an OpenID Connect provider ([Accounts.Arrive]). If
// the account has a second factor, the error is a [*CodeNeeded], and [Accounts.Confirm]
// begins the session. A passkey counts as both factors.
//
// A team ([Accounts.CreateTeam]) is an account that nobody signs in to. It owns keys like any
// other account, and has members, each with a [TeamRole]. This package does not decide what a
// role allows: the dashboard and its API do.
//
// An API key ([Keyring]) has a secret of 128 random bits, written as 32 hexadecimal
// digits. A key belongs to an account or to the operator. Its secret is shown once, when
// it is created; only the secret's SHA-256 is stored. A random secret of 128 bits cannot
// be guessed, so it needs neither a salt nor a slow hash. Lists and logs name a key by
// its [KeyID], which reveals nothing about the secret. Rotating a key gives it a new
// secret; the old one can be kept valid for a while.
//
// Checking a key costs one SHA-256 and one look-up in memory. Its duration may depend on
// the hash but never on the secret's own bytes, so timing reveals at most bits of a hash.
//
// The current state of all accounts, keys and invitations is held in memory; the store
// holds every revision of them. A change is one row. It is durable before it is
// acknowledged, and every later check sees it. A restriction, such as revoking a key, takes
// effect even if the store refuses writes; it is Unsaved until [Accounts.Run] has stored it.
// Several processes may share a store ([Keyring.Refresh]). A row that cannot be read disables
// only the key, account or invitation that it belongs to ([Accounts.Unreadable]).
//
// An account is deleted with everything that belongs to it ([Accounts.Delete]), also in other
// parts of the service, which [Accounts.Attach] names.
//
// Invalid input is reported as an [*Invalid], which names the form field. Signing in or
// changing things too often is reported as a [*TooSoon]; changes are limited because
// every revision stays in the store. The other kinds of errors are variables of this
// package. No error contains a password, a secret or a token.
package account
