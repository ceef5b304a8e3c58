import { type CommandDescription, type MetaCommand, parse, UsageError } from './command.ts'

export const completion: MetaCommand = {
  help: `Usage: mediabucket completion bash|zsh|fish

Prints a script that completes commands, options and paths in the shell.

  bash  mediabucket completion bash > ~/.local/share/bash-completion/completions/mediabucket
  zsh   mediabucket completion zsh > ~/.zfunc/_mediabucket, with fpath+=~/.zfunc before compinit in ~/.zshrc
  fish  mediabucket completion fish > ~/.config/fish/completions/mediabucket.fish`,

  async run(args, describe) {
    const { positionals } = parse('completion', { args: [...args], allowPositionals: true, options: {} })
    const [shell = '', ...more] = positionals
    const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined
    if (script === undefined || more.length > 0) throw new UsageError('completion takes bash, zsh or fish')
    return script((await describe()).map(withOptions))
  },
}

interface Completed extends CommandDescription {
  readonly options: readonly string[]
}

/** The options are those that the help of the command names. */
function withOptions(command: CommandDescription): Completed {
  const found = command.help.matchAll(/(?<![\w-])(?:--[a-z][a-z0-9-]*|-[a-zA-Z0-9])(?![\w-])/g)
  return { ...command, options: [...new Set([...found].map(([option]) => option)), '--help'].sort() }
}

const scripts: Readonly<Record<string, (commands: readonly Completed[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
}

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** The first words of commands, and the second ones of those that have two. */
function wordsOf(commands: readonly Completed[]): Map<string, Completed[]> {
  return Map.groupBy(commands, ({ name }) => name.split(' ', 1).join())
}

const secondWord = ({ name }: Completed): string => name.split(' ')[1] ?? ''

const isGroup = (group: readonly Completed[]): boolean => group.some((command) => secondWord(command) !== '')

/** The arms of a shell's case statement that set the second words and the options. */
function caseArms(commands: readonly Completed[], indent: string): string {
  const groups = [...wordsOf(commands)].filter(([, group]) => isGroup(group))
  const seconds = groups.map(
    ([first, group]) => `${indent}${quote(first)}) seconds=${quote(group.map(secondWord).join(' '))} ;;`,
  )
  return seconds.join('\n')
}

const optionArms = (commands: readonly Completed[], indent: string): string =>
  commands
    .map(({ name, options }) => `${indent}${quote(name)}) options=${quote(options.join(' '))} ;;`)
    .join('\n')

function bashScript(commands: readonly Completed[]): string {
  return `# bash completion for mediabucket
_mediabucket() {
  local cur=\${COMP_WORDS[COMP_CWORD]} command=\${COMP_WORDS[1]-} seconds= options=
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W ${quote([...wordsOf(commands).keys(), 'help'].join(' '))} -- "$cur"))
    return
  fi
  case $command in
${caseArms(commands, '    ')}
  esac
  if [[ -n $seconds ]]; then
    if ((COMP_CWORD == 2)); then
      COMPREPLY=($(compgen -W "$seconds" -- "$cur"))
      return
    fi
    command="$command \${COMP_WORDS[2]}"
  fi
  [[ $cur == -* ]] || return 0
  case $command in
${optionArms(commands, '    ')}
  esac
  COMPREPLY=($(compgen -W "$options" -- "$cur"))
}
complete -o bashdefault -o default -F _mediabucket mediabucket`
}

function zshScript(commands: readonly Completed[]): string {
  const described = (name: string, summary: string) => quote(`${name.replaceAll(':', '\\:')}:${summary}`)
  const first = [...wordsOf(commands)].map(([name, group]) =>
    described(name, isGroup(group) ? `${group.map(secondWord).join(', ')}` : (group[0]?.summary ?? '')),
  )
  return `#compdef mediabucket
_mediabucket() {
  local command=$words[2] seconds= options=
  if ((CURRENT == 2)); then
    local -a commands=(
${first.map((text) => `      ${text}`).join('\n')}
    )
    _describe command commands
    return
  fi
  case $command in
${caseArms(commands, '    ')}
  esac
  if [[ -n $seconds ]]; then
    if ((CURRENT == 3)); then
      compadd -- \${=seconds}
      return
    fi
    command="$command $words[3]"
  fi
  if [[ $words[CURRENT] != -* ]]; then
    _files
    return
  fi
  case $command in
${optionArms(commands, '    ')}
  esac
  compadd -- \${=options}
}
if [[ \${zsh_eval_context[-1]} == loadautofunc ]]; then
  _mediabucket "$@"
else
  compdef _mediabucket mediabucket
fi`
}

function fishScript(commands: readonly Completed[]): string {
  const lines = ['# fish completion for mediabucket']
  const complete = (condition: string, rest: string) =>
    lines.push(`complete -c mediabucket -n ${quote(condition)} ${rest}`)
  for (const [first, group] of wordsOf(commands)) {
    const summary = isGroup(group) ? group.map(secondWord).join(', ') : (group[0]?.summary ?? '')
    complete('__fish_use_subcommand', `-f -a ${quote(first)} -d ${quote(summary)}`)
    const seconds = group.map(secondWord).join(' ')
    for (const command of group) {
      const second = secondWord(command)
      const isFirst = `__fish_seen_subcommand_from ${first}`
      if (second !== '')
        complete(
          `${isFirst}; and not __fish_seen_subcommand_from ${seconds}`,
          `-f -a ${second} -d ${quote(command.summary)}`,
        )
      const condition = second === '' ? isFirst : `${isFirst}; and __fish_seen_subcommand_from ${second}`
      for (const option of command.options)
        complete(condition, option.startsWith('--') ? `-l ${option.slice(2)}` : `-s ${option.slice(1)}`)
    }
  }
  return lines.join('\n')
}
