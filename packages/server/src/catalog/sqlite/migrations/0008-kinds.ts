import { kindExpression } from '../../item-kinds.ts'

/** For lists of items with filters (catalog/item-statements.ts). */
export const kinds = `
CREATE INDEX media_by_kind ON media (bucket_id, ${kindExpression}, created_at, seq);
`
