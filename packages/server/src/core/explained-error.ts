/** An expected error, whose message contains the reason and what to do. The command line prints it without a stack. */
export class ExplainedError extends Error {}
