// The rules of a service that a program can check before it sends a request: @mediabucket/client/rules. The service itself, its command line
// and its gallery use them too.

export * from './label-rules.ts'
export * from './list-rules.ts'
export * from './name-rules.ts'
export * from './text-rules.ts'
