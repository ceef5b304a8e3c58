/** What a token may do (docs/interface.md A3). */
export const scopes = ['media:read', 'media:write', 'media:delete', 'tokens:manage'] as const
export type Scope = (typeof scopes)[number]

/** What a token gets when it is made without naming scopes. */
export const defaultScopes: readonly Scope[] = ['media:read', 'media:write', 'media:delete']

export const isScope = (name: string): name is Scope => (scopes as readonly string[]).includes(name)
