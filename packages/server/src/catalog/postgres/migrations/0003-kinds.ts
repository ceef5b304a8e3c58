import { kindExpression } from '../../item-kinds.ts'

/** For lists of items with filters (catalog/item-statements.ts). The planner needs statistics of the expression. */
export const kinds = `
CREATE INDEX media_by_kind ON media (bucket_id, ${kindExpression}, created_at, seq);

ANALYZE media;
`
