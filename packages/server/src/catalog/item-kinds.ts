import { type ItemKind, itemKinds } from '../core/items-query.ts'

/** The beginnings of the stored types of each kind. All other types are of the kind `other`. */
const kinds: readonly (readonly [ItemKind, readonly string[]])[] = [
  ['image', ['image/']],
  ['video', ['video/', 'application/mxf', 'application/vnd.ms-asf']],
  ['audio', ['audio/']],
  [
    'document',
    [
      'text/',
      'application/pdf',
      'application/rtf',
      'application/epub+zip',
      'application/msword',
      'application/vnd.ms-excel',
      'application/vnd.ms-powerpoint',
      'application/vnd.ms-word',
      'application/vnd.openxmlformats-officedocument.',
      'application/vnd.oasis.opendocument.',
      'application/vnd.apple.keynote',
      'application/vnd.apple.numbers',
      'application/vnd.apple.pages',
    ],
  ],
]

export const kindNumber = (kind: ItemKind): number => itemKinds.indexOf(kind)

const startsWith = (prefix: string) => `substr(content_type, 1, ${prefix.length}) = '${prefix}'`
const branches = kinds.map(
  ([kind, prefixes]) => `WHEN ${prefixes.map(startsWith).join(' OR ')} THEN ${kindNumber(kind)}`,
)

/**
 * The number of an item's kind, as an expression of both engines. It is part of their indexes, so a change needs a migration that
 * creates the index again.
 */
export const kindExpression = `(CASE ${branches.join(' ')} ELSE ${kindNumber('other')} END)`
