// Package abuse tests a running service with many clients that misuse it in different ways, each
// from an address of its own, while honest clients keep sending requests. It contains only tests.
// All traffic stays on the loopback interface and is bounded.
package abuse
