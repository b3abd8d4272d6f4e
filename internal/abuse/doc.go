// Package abuse lets many clients misuse a running service in many ways at once, each
// from an address of its own, while honest ones go on asking. It has no code, only
// tests. All traffic stays on the loopback interface and is bounded in number.
package abuse
