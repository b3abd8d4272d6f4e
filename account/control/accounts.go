package control

import (
	"context"
	"net/http"
	"time"

	"ashlar/account"
)

// Operations on accounts and invitations.
var (
	createAccount   = operation[account.NewAccount, tokenAnswer]{"/accounts/create"}
	listAccounts    = operation[nothing, []account.Account]{"/accounts/list"}
	resetAccount    = operation[accountRequest, tokenAnswer]{"/accounts/reset"}
	resetFactor     = operation[accountRequest, account.Account]{"/accounts/reset-factor"}
	disableAccount  = operation[accountRequest, account.Account]{"/accounts/disable"}
	enableAccount   = operation[accountRequest, account.Account]{"/accounts/enable"}
	deleteAccount   = operation[accountRequest, account.Account]{"/accounts/delete"}
	setRole         = operation[accountRequest, account.Account]{"/accounts/role"}
	setLimits       = operation[accountRequest, account.Account]{"/accounts/limits"}
	invite          = operation[account.NewInvitation, tokenAnswer]{"/invitations/create"}
	listInvitations = operation[nothing, []account.Invitation]{"/invitations/list"}
	withdraw        = operation[string, account.Invitation]{"/invitations/withdraw"}
)

// accountRequest is an account and the changes to make to it.
type accountRequest struct {
	Account string         `json:"account"` // its ID or its e-mail address
	Role    account.Role   `json:"role,omitempty"`
	Limits  account.Limits `json:"limits,omitzero"`
}

// tokenAnswer is a token and the object that it is for.
type tokenAnswer struct {
	Token      string             `json:"token"`
	Until      time.Time          `json:"until,omitzero"`
	Account    account.Account    `json:"account,omitzero"`
	Invitation account.Invitation `json:"invitation,omitzero"`
}

// serveAccounts registers the operations on accounts.
func serveAccounts(mux *http.ServeMux, accounts Accounts) {
	createAccount.serve(mux, func(ctx context.Context, in account.NewAccount) (out tokenAnswer, err error) {
		out.Token, out.Account, err = accounts.Create(ctx, in)
		return out, err
	})
	listAccounts.serve(mux, func(ctx context.Context, _ nothing) ([]account.Account, error) { return accounts.List(ctx) })
	resetAccount.serve(mux, func(ctx context.Context, in accountRequest) (out tokenAnswer, err error) {
		out.Token, out.Until, err = accounts.Reset(ctx, in.Account)
		return out, err
	})
	resetFactor.serve(mux, func(ctx context.Context, in accountRequest) (account.Account, error) {
		return accounts.ResetFactor(ctx, in.Account)
	})
	disableAccount.serve(mux, func(ctx context.Context, in accountRequest) (account.Account, error) {
		return accounts.Disable(ctx, in.Account)
	})
	enableAccount.serve(mux, func(ctx context.Context, in accountRequest) (account.Account, error) {
		return accounts.Enable(ctx, in.Account)
	})
	deleteAccount.serve(mux, func(ctx context.Context, in accountRequest) (account.Account, error) {
		return accounts.Delete(ctx, in.Account)
	})
	setRole.serve(mux, func(ctx context.Context, in accountRequest) (account.Account, error) {
		return accounts.SetRole(ctx, in.Account, in.Role)
	})
	setLimits.serve(mux, func(ctx context.Context, in accountRequest) (account.Account, error) {
		return accounts.SetLimits(ctx, in.Account, in.Limits)
	})
	invite.serve(mux, func(ctx context.Context, in account.NewInvitation) (out tokenAnswer, err error) {
		out.Token, out.Invitation, err = accounts.Invite(ctx, in)
		return out, err
	})
	listInvitations.serve(mux, func(ctx context.Context, _ nothing) ([]account.Invitation, error) {
		return accounts.Invitations(ctx)
	})
	withdraw.serve(mux, accounts.Withdraw)
}

// accountsClient implements Accounts through the process that has the store open.
type accountsClient struct{ *Client }

func (a accountsClient) Create(ctx context.Context, n account.NewAccount) (string, account.Account, error) {
	out, err := createAccount.ask(ctx, a.Client, n)
	return out.Token, out.Account, err
}

func (a accountsClient) List(ctx context.Context) ([]account.Account, error) {
	return listAccounts.ask(ctx, a.Client, nothing{})
}

func (a accountsClient) Reset(ctx context.Context, idOrEmail string) (string, time.Time, error) {
	out, err := resetAccount.ask(ctx, a.Client, accountRequest{Account: idOrEmail})
	return out.Token, out.Until, err
}

func (a accountsClient) ResetFactor(ctx context.Context, idOrEmail string) (account.Account, error) {
	return resetFactor.ask(ctx, a.Client, accountRequest{Account: idOrEmail})
}

func (a accountsClient) Disable(ctx context.Context, idOrEmail string) (account.Account, error) {
	return disableAccount.ask(ctx, a.Client, accountRequest{Account: idOrEmail})
}

func (a accountsClient) Enable(ctx context.Context, idOrEmail string) (account.Account, error) {
	return enableAccount.ask(ctx, a.Client, accountRequest{Account: idOrEmail})
}

func (a accountsClient) Delete(ctx context.Context, idOrEmail string) (account.Account, error) {
	return deleteAccount.ask(ctx, a.Client, accountRequest{Account: idOrEmail})
}

func (a accountsClient) SetRole(ctx context.Context, idOrEmail string, role account.Role) (account.Account, error) {
	return setRole.ask(ctx, a.Client, accountRequest{Account: idOrEmail, Role: role})
}

func (a accountsClient) SetLimits(ctx context.Context, idOrEmail string, limits account.Limits) (account.Account, error) {
	return setLimits.ask(ctx, a.Client, accountRequest{Account: idOrEmail, Limits: limits})
}

func (a accountsClient) Invite(ctx context.Context, n account.NewInvitation) (string, account.Invitation, error) {
	out, err := invite.ask(ctx, a.Client, n)
	return out.Token, out.Invitation, err
}

func (a accountsClient) Invitations(ctx context.Context) ([]account.Invitation, error) {
	return listInvitations.ask(ctx, a.Client, nothing{})
}

func (a accountsClient) Withdraw(ctx context.Context, id string) (account.Invitation, error) {
	return withdraw.ask(ctx, a.Client, id)
}
