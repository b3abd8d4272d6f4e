// Package dashboard is the pages with which people use the service without its shell:
// they sign up, get keys, see what is done with them, and try methods. Operators look
// after accounts and invitations.
//
// What it promises:
//   - Pages are made on the server, and do everything without a script. The one script
//     there is only spares clicks. Nothing is loaded from anywhere else, and a policy
//     sent with every page makes browsers keep to that.
//   - What changes something is a POST from a page of its own ([http.CrossOriginProtection]
//     and SameSite cookies) and is answered with a redirect, so that loading a page again
//     repeats nothing. Redirects lead to paths of the dashboard only. The exception is
//     what shows a secret: that is in one answer and nowhere else, so that answer cannot
//     be a redirect.
//   - Everybody sees their own keys and usage. What belongs to another account is not
//     there, as far as answers tell.
//   - A form that is wrong comes back with what was typed, save passwords, and with what
//     is wrong beside each field.
//   - A page shows the state that is current when it is made. No page that shows what is
//     somebody's own is kept by caches.
//
// Each page has a file of its own and a template of the same name. Package chart draws
// the pictures. People and keys are package account's; the networks, and who answers
// the console's requests, come from whoever makes the [Dashboard].
package dashboard
