import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { setHome } from '../service/environment.ts'

/**
 * Run by root, becomes the user who owns the data directory, so that the service can use what a command creates, and a local PostgreSQL
 * server knows the user. Does nothing for another user, and where the directory does not exist or belongs to root.
 */
export function becomeOwnerOf(directory: string): void {
  if (process.getuid?.() !== 0) return
  const owner = statSync(directory, { throwIfNoEntry: false })
  if (owner === undefined || owner.uid === 0) return
  // The groups first: afterwards the process may not change them.
  process.setgroups?.([...groupsOf(owner.uid), owner.gid])
  process.setgid?.(owner.gid)
  process.setuid?.(owner.uid)
  setHome(homeOfUser())
}

/** The groups of a user; none where the user has no entry, as in a container. */
function groupsOf(user: number): number[] {
  const { status, stdout } = spawnSync('id', ['-G', `${user}`], { encoding: 'utf8' })
  return status === 0 ? stdout.trim().split(' ').map(Number) : []
}

/** `/` where the user has no entry. */
function homeOfUser(): string {
  try {
    return userInfo().homedir
  } catch {
    return '/'
  }
}
