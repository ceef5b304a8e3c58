/** The permissions of a token (docs/interface.md A3). */
export const scopes = ['media:read', 'media:write', 'media:delete', 'tokens:manage'] as const
export type Scope = (typeof scopes)[number]

/** The scopes of a token that is issued without a list of scopes. */
export const defaultScopes: readonly Scope[] = ['media:read', 'media:write', 'media:delete']

export const isScope = (name: string): name is Scope => (scopes as readonly string[]).includes(name)
