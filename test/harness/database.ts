import { createDatabase } from './postgres.ts'

type Settings = Readonly<Record<string, string>>

/** Where servers that start now store their catalogs: in their data directories, or in PostgreSQL databases. */
let usesPostgres = false

/** Data directories of servers with a database, and its URL. */
const databases = new Map<string, Promise<string>>()

/** From this call to that of the returned function, new servers store their catalogs in PostgreSQL. */
export function usePostgres(): () => void {
  usesPostgres = true
  return () => {
    usesPostgres = false
  }
}

export const currentEngine = (): 'sqlite' | 'postgres' => (usesPostgres ? 'postgres' : 'sqlite')

/** Creates a database for a new data directory, where servers store their catalogs in PostgreSQL. */
export function prepareDatabase(directory: string): void {
  if (usesPostgres && !databases.has(directory))
    databases.set(
      directory,
      createDatabase().then(({ url }) => url),
    )
}

/** The settings with which a process uses the catalog of this data directory. */
export async function databaseSettings(directory: string): Promise<Settings> {
  const url = await databases.get(directory)
  return url === undefined ? {} : { MEDIABUCKET_DATABASE_URL: url }
}
