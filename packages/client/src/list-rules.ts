/** The orders of `GET /api/items` (docs/interface.md K2, K19, K20). */
export const listOrders = ['oldest', 'newest', 'taken', 'taken-desc', 'name', 'name-desc'] as const
export type ListOrder = (typeof listOrders)[number]

export const itemKinds = ['image', 'video', 'audio', 'document', 'other'] as const
/** The kind of an item, which its stored type determines. */
export type ItemKind = (typeof itemKinds)[number]

/** What can happen to an item, as changes and webhooks tell it. */
export type ChangeType = 'added' | 'edited' | 'trashed' | 'restored' | 'removed' | 'expired' | 'previewed'

/** The most entries in one response to a list (docs/interface.md K2). */
export const maxListLimit = 500
/** The most ids in one request. */
export const maxIds = 500
