// Bundles src into dist, with the licences of what is bundled: `npm ci && npm run bundle`.
import {build} from 'esbuild'
import {readFileSync, writeFileSync} from 'node:fs'

const {metafile} = await build({
  entryPoints: {app: 'src/main.js', style: 'src/style.css'},
  outdir: 'dist',
  entryNames: '[name]',
  bundle: true,
  minify: true,
  target: 'es2022',
  format: 'iife',
  metafile: true,
  logLevel: 'info',
})

const packages = new Set(Object.keys(metafile.inputs).map((file) => file.match(/^node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0]))
packages.delete(undefined)
const licences = [...packages].sort().map((folder) => {
  const {name, version, license} = JSON.parse(readFileSync(`${folder}/package.json`))
  let text = license
  for (const file of ['LICENSE', 'LICENSE.md', 'LICENSE-MIT.txt', 'LICENSE.txt']) {
    try {
      text = readFileSync(`${folder}/${file}`, 'utf8').trim()
      break
    } catch (error) {
      if (error.code !== 'ENOENT') throw error
    }
  }
  return `${name} ${version}\n\n${text}\n`
})
writeFileSync('dist/licences.txt', licences.join('\n' + '-'.repeat(80) + '\n\n'))
