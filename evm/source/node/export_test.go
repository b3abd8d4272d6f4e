package node

// SetWait sets how many bytes of the messages of a subscription may wait.
func (c *Client) SetWait(bytes int) { c.wait = bytes }
