package litmus

func (p *parser) ptx() error {
	return p.fail(p.peek().pos, "the PTX style is not supported yet; write the test in the style \"C NAME\"")
}
