import { expect, test } from 'vitest'
import { splitDatabaseUrl, withoutPassword } from './database-urls.ts'

const partsOf = (text: string) =>
  splitDatabaseUrl(text)?.map(({ username, password, host, pathname, search }) =>
    [username, password, host, pathname, search].join(' '),
  )

test('a URL with several servers is split into one URL for each', () => {
  expect(partsOf('postgres://u:a,b@h1:5432,[::1]:5433,h3/d?sslmode=require')).toEqual([
    'u a,b h1:5432 /d ?sslmode=require',
    'u a,b [::1]:5433 /d ?sslmode=require',
    'u a,b h3 /d ?sslmode=require',
  ])
  expect(partsOf('postgres://u:p@x@h/d')).toEqual(['u p%40x h /d '])
  expect(partsOf('postgres:///d?host=/run/postgresql')).toEqual(['   /d ?host=/run/postgresql'])
})

test.each(['', 'h1:5432/d', 'mysql://h/d', 'postgres:d', 'postgres://h:x/d', 'postgres://h1:1,h2:x/d'])(
  '"%s" is no URL of a database',
  (text) => {
    expect(splitDatabaseUrl(text)).toBeNull()
  },
)

test('the password is removed from both places, and nothing else', () => {
  expect(withoutPassword('postgres://u:secret@h1:1,h2:2/d?sslmode=require&password=secret')).toBe(
    'postgres://u@h1:1,h2:2/d?sslmode=require',
  )
  expect(withoutPassword('postgresql://h/d')).toBe('postgresql://h/d')
})
