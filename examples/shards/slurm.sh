#!/usr/bin/env bash
#SBATCH --job-name=eyechart
#SBATCH --array=1-16
#SBATCH --gpus=1
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
#SBATCH --output=eyechart-%A_%a.log
# Each job of the array asks its own rows of the same runs. All jobs write below one folder, $OUT,
# which all machines must see. A job that is submitted again goes on where it stopped.
# After the last one, the same command without --shard shows the tables of the whole runs.
set -euo pipefail
: "${MODEL:=vllm/Qwen/Qwen3-4B}" "${TASK:=counting,copying}" "${OUT:=results}"
exec bench run --task "$TASK" --model "$MODEL" --out "$OUT" \
  --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" "$@"
