import { Type } from 'typebox'
import { closedObject, time } from './schemas.ts'

// The schemas of requests and responses with the keys that sign URLs.

export const KeyParams = Type.Object({
  id: Type.String({ description: 'The id of a key.', examples: ['4k9m2x7c1v8q'] }),
})

export const KeyObject = closedObject('Key', 'A key that signs URLs, without its secret.', {
  id: Type.String({ description: 'The `key` of the URLs that it signs.' }),
  state: Type.Unsafe<'signs' | 'verifies'>({
    type: 'string',
    enum: ['signs', 'verifies'],
    description: '`signs` for the newest key, which signs all new URLs; `verifies` for the others.',
  }),
  created_at: time('When it was created.'),
})

export const KeyList = closedObject('KeyList', 'The keys of the service, in the order of their creation.', {
  data: Type.Array(KeyObject),
})
